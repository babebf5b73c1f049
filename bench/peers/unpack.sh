#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# unpack.sh FOLDER PACKAGE...: unpacks those of these Debian packages that there are, with what they depend on and is not
# installed, into FOLDER. The system stays as it is, and no service is started. Root's rights are not needed.
set -euo pipefail
folder=$1
shift
part=$folder.part
log=.sluice/apt.log

if ! command -v apt-get >/dev/null; then
    echo "missing: apt-get, for the peers, which are Debian's packages ($*)" >&2
    exit 1
fi
rm -rf "$part"
mkdir -p "$part/lists/partial" "$part/cache/archives/partial" "$part/root"
trap 'rm -rf "$part"' EXIT
part=$(realpath "$part")
options=(-q -o "Dir::State::lists=$part/lists" -o "Dir::Cache=$part/cache" -o Debug::NoLocking=1)
options+=(-o APT::Sandbox::User=root -o Acquire::Retries=5)
export DEBIAN_FRONTEND=noninteractive

failed() {
    tail -n 5 "$log" >&2
    echo "missing: Debian packages that apt-get could not download (see $log): $*" >&2
    exit 1
}

echo "unpacking Debian packages: $*" >&2
apt-get "${options[@]}" update >"$log" 2>&1 </dev/null || failed "$@"
known=()
for package; do
    if apt-cache "${options[@]}" show "$package" >/dev/null 2>&1; then
        known+=("$package")
    else
        echo "not in this release: $package" >&2
    fi
done
# What is installed is downloaded as well, so that the peers are those of this folder.
apt-get "${options[@]}" -y --no-install-recommends --download-only --reinstall install "${known[@]}" \
    >>"$log" 2>&1 </dev/null || failed "${known[@]}"
for package in "$part"/cache/archives/*.deb; do
    dpkg-deb --extract "$package" "$part/root"
done
rm -rf "$folder"
mv "$part/root" "$folder"
