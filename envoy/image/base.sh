#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# base.sh ARCHITECTURE CACHE FOLDER: unpacks the packages of debian.txt into FOLDER in the form of distroless
# images: each package has an entry in var/lib/dpkg/status.d, by which scanners recognize it, and a shell is not included.
# CACHE keeps the downloaded packages.
set -euo pipefail
architecture=$1 cache=$2 root=$3
here=$(dirname "$0")
# The places of a package: in its release, and after its release has ended.
mirrors=(https://deb.debian.org/debian https://snapshot.debian.org/archive/debian/20261122T000000Z)

has_digest() { # FILE SHA256
    echo "$2  $1" | sha256sum --check --status 2>/dev/null
}

fetch() { # PATH SHA256: sets `package`
    package=$cache/${1##*/}
    if has_digest "$package" "$2"; then return; fi
    local mirror
    for mirror in "${mirrors[@]}"; do
        curl --fail --silent --show-error --location --retry 3 --output "$package.part" "$mirror/$1" || continue
        if has_digest "$package.part" "$2"; then
            mv "$package.part" "$package"
            return
        fi
        echo "$mirror/$1 does not have the SHA-256 $2 of debian.txt" >&2
    done
    echo "${1##*/} cannot be downloaded" >&2
    exit 1
}

command -v curl >/dev/null || "$here/../../.ci/debian.sh" curl ca-certificates
mkdir -p "$cache" "$root/var/lib/dpkg/status.d"
while read -r of name _ path sha256; do
    case $of in "$architecture" | all) ;; *) continue ;; esac
    fetch "$path" "$sha256"
    dpkg-deb --extract "$package" "$root"
    dpkg-deb --field "$package" >"$root/var/lib/dpkg/status.d/$name"
done <"$here/debian.txt"

# The file that the package's own script would write.
cat "$root"/usr/share/ca-certificates/mozilla/*.crt >"$root/etc/ssl/certs/ca-certificates.crt"
# Nothing reads these files in the image without a shell. The texts of the packages' licences stay.
find "$root/usr/share/doc" -mindepth 3 -delete
find "$root/usr/share/doc" -mindepth 2 ! -name copyright -delete
rm -r "$root"/usr/share/{ca-certificates,info,lintian,man} "$root"/usr/lib/*/gconv "$root"/usr/sbin/* \
    "$root/etc/update-motd.d"

cat >"$root/etc/passwd" <<'END'
root:x:0:0:root:/root:/sbin/nologin
nobody:x:65534:65534:nobody:/nonexistent:/sbin/nologin
nonroot:x:65532:65532:nonroot:/var/lib/sluice:/sbin/nologin
END
printf '%s\n' root:x:0: nobody:x:65534: nonroot:x:65532: >"$root/etc/group"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
