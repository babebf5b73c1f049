#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# debian.sh PACKAGE...: installs missing packages, if this is Debian or Ubuntu and the user is root.
set -euo pipefail
cd "$(dirname "$0")/.."
log=.sluice/apt.log

# Two builds side by side may need packages, and `apt-get update` does not wait for its lock.
mkdir -p .sluice
exec 9>.sluice/apt.lock
flock 9

absent=()
for package; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || absent+=("$package")
done
[ ${#absent[@]} -gt 0 ] || exit 0

mend="apt-get update && apt-get install --no-install-recommends ${absent[*]}"
if ! command -v apt-get >/dev/null; then
    echo "missing: ${absent[*]} (so named in Debian). To fix it, use this system's package manager" >&2
    exit 1
elif [ "$(id -u)" -ne 0 ]; then
    echo "missing: Debian packages. To fix it, as root: $mend" >&2
    exit 1
fi

echo "installing Debian packages: ${absent[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
if ! {
    apt-get -q -o Acquire::Retries=5 update &&
        apt-get -qy -o Acquire::Retries=5 -o DPkg::Lock::Timeout=300 install --no-install-recommends "${absent[@]}"
} >"$log" 2>&1 </dev/null; then
    tail -n 5 "$log" >&2
    echo "missing: ${absent[*]}, which apt-get could not install (see $log). To fix it: $mend" >&2
    exit 1
fi
