#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# unpack.sh LIST FOLDER: unpacks the Debian packages of LIST, with all their dependencies, into FOLDER/RELEASE, on any
# Debian or Ubuntu. FOLDER/bin has a script for each program, which starts the program with the C library and the
# other libraries that it was built for; FOLDER/versions.txt has the version of each package. The system is not
# changed, no service is started, and root's rights are not needed.
set -euo pipefail
list=$1
folder=$2
part=$folder.part
log=.sluice/apt.log
mirror=http://deb.debian.org
keyrings=/usr/share/keyrings
# If the machine's own keyring is older than the releases: a package of the mirror, by its SHA-256.
keyring_package=pool/main/d/debian-archive-keyring/debian-archive-keyring_2025.1_all.deb
keyring_sha256=9ea7778e443144ca490668737a8ab22dd3e748bb99e805e22ec055abeb3c7fac

if ! command -v apt-get >/dev/null; then
    echo "missing: apt-get, for the peers, which are Debian's packages" >&2
    exit 1
fi
rm -rf "$part"
mkdir -p "$part/bin"
trap 'rm -rf "$part"' EXIT
part=$(realpath "$part")
: >"$log"
export DEBIAN_FRONTEND=noninteractive

failed() {
    tail -n 5 "$log" >&2
    echo "missing: $1 (see $log)" >&2
    exit 1
}

# Sets keyring to a file with the keys of all releases of the list.
find_keyring() {
    local ending package=$part/keyring.deb
    for ending in gpg pgp; do
        keyring=$keyrings/debian-archive-keyring.$ending
        ! [ -e "$keyrings/debian-archive-trixie-stable.$ending" ] || return 0
    done
    /usr/lib/apt/apt-helper download-file "$mirror/debian/$keyring_package" "$package" "SHA256:$keyring_sha256" \
        >>"$log" 2>&1 || failed "Debian's keys: install debian-archive-keyring 2023.3+deb12u2 or later"
    dpkg-deb --extract "$package" "$part/keyring"
    keyring=$part/keyring$keyring
}

# The packages of a release in the list.
packages_of() {
    awk -v release="$1" '$1 == release { print $2 }' "$list"
}

# download RELEASE STATE: the release's packages and all their dependencies, into STATE/archives. apt ignores the
# packages, the sources and the preferences of this machine.
download() {
    local release=$1 state=$2 options packages suites
    mkdir -p "$state/lists/partial" "$state/archives/partial" "$state"/etc/{sources.list,preferences}.d
    : >"$state/status"
    for suites in "debian $release $release-updates" "debian-security $release-security"; do
        printf 'Types: deb\nTargets: Packages\nURIs: %s/%s\nSuites: %s\nComponents: main\nSigned-By: %s\n\n' \
            "$mirror" "${suites%% *}" "${suites#* }" "$keyring"
    done >"$state/etc/sources.list.d/debian.sources"
    options=(-q -o "Dir::Etc=$state/etc" -o "Dir::State=$state" -o "Dir::State::status=$state/status")
    options+=(-o "Dir::Cache=$state" -o Debug::NoLocking=1 -o APT::Sandbox::User=root -o Acquire::Retries=5)
    mapfile -t packages < <(packages_of "$release")
    apt-get "${options[@]}" update >>"$log" 2>&1 </dev/null &&
        apt-get "${options[@]}" -y --no-install-recommends --download-only install "${packages[@]}" \
            >>"$log" 2>&1 </dev/null
}

# write_script RELEASE PROGRAM: bin/NAME for the program of that path. Its loader takes libraries only from the
# release.
write_script() {
    local release=$1 program=$2 loader libraries
    loader=$(find "$part/$release" -type f -name 'ld-linux-*.so.*' -printf '%P' -quit)
    # Two of these three folders are not in every release.
    libraries=$(cd "$part/$release" && shopt -s nullglob && printf '%s\n' {,usr/}lib/*-linux-gnu usr/lib/trafficserver* |
        sed "s|^|\$root/|" | paste -sd:)
    cat >"$part/bin/${program##*/}" <<END
#!/bin/sh
# $program of Debian's $release.
root=\${0%/*}/../$release
exec "\$root/$loader" --inhibit-cache --library-path "$libraries" --argv0 "\$0" "\$root/$program" "\$@"
END
    chmod +x "$part/bin/${program##*/}"
}

find_keyring
mapfile -t releases < <(awk '!/^#/ { print $1 }' "$list" | sort -u)
for release in "${releases[@]}"; do
    echo "unpacking Debian packages of $release: $(packages_of "$release" | paste -sd' ')" >&2
    state=$part/apt/$release
    download "$release" "$state" || failed "Debian packages of $release that apt-get could not download"
    for package in "$state"/archives/*.deb; do
        # Varnish compiles its configuration with this machine's compiler.
        case $(dpkg-deb --field "$package" Section) in
        devel | libdevel | perl) ;;
        *) dpkg-deb --extract "$package" "$part/$release" ;;
        esac
        name=$(dpkg-deb --field "$package" Package)
        if packages_of "$release" | grep -qxF "$name"; then
            echo "$name $(dpkg-deb --field "$package" Version)" >>"$part/versions.txt"
        fi
    done
    while read -r _ _ programs; do
        for program in $programs; do
            write_script "$release" "$program"
        done
    done < <(grep "^$release " "$list")
done
rm -rf "$part/apt" "$part/keyring" "$part/keyring.deb" "$folder"
mv "$part" "$folder"
cat "$folder/versions.txt" >&2
