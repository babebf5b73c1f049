#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# release.sh FOLDER PROGRAM MODULE BOOK HELM [REPOSITORY]: completes the release in FOLDER, where build.sh has made
# FOLDER/images. Adds the filter's module, the book of the documents, the chart, and the manual pages and completions
# that PROGRAM prints. Prints the commands that publish the release. With REPOSITORY all files name the images in that repository. The same commit always gives the same
# SHA256SUMS.
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022
export LC_ALL=C
folder=$1 program=$2 module=$3 book=$4 helm=$5 repository=${6:-}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)
made=$(git log -1 --format=%ct 2>/dev/null || echo 0)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

archive() { # FOLDER PATH...: as a tar archive, the same for the same files
    tar --create --format=ustar --sort=name --mtime="@$made" --owner=0 --group=0 --numeric-owner --directory "$@"
}

digest() { # LAYOUT
    tr -d ' \n' <"$folder/images/$1/index.json" | sed 's/.*"digest":"\([^"]*\)".*/\1/'
}

manual() { # SHARE: the manual pages and the completions, at the places that they have below /usr/share
    "$program" man "$1/man/man1"
    gzip --no-name --best "$1"/man/man1/*
    mkdir -p "$1"/{bash-completion/completions,zsh/vendor-completions,fish/vendor_completions.d}
    "$program" completions bash >"$1/bash-completion/completions/sluice"
    "$program" completions zsh >"$1/zsh/vendor-completions/_sluice"
    "$program" completions fish >"$1/fish/vendor_completions.d/sluice.fish"
}

find "$folder" -mindepth 1 -maxdepth 1 ! -name images -exec rm -r {} +
install --mode=644 "$module" "$folder/sluice.wasm"
archive "$folder/images/edge" oci-layout index.json blobs >"$folder/sluice-$version-image.tar"
cp -R "$book" "$work/sluice-$version-docs"
archive "$work" "sluice-$version-docs" | gzip --no-name >"$folder/sluice-$version-docs.tar.gz"

image=${repository:-REPOSITORY}/edge:$version@$(digest edge)
kit=$work/sluice-$version
mkdir "$kit"
cp -R --parents CHANGELOG.md LICENSE mesh envoy/{compose,demo,observability,policies,systemd} "$kit"
manual "$kit/share"
if [ -n "$repository" ]; then
    find "$kit" -name settings.env -exec sed -i -e "s|^MODULE=.*|MODULE=oci://$repository/filter:$version|" \
        -e "s|^IMAGE=.*|IMAGE=$image|" {} +
    sed -i -e "s|[$]{IMAGE:-[^}]*}|\${IMAGE:-$image}|" -e "s|PULL_POLICY:-never|PULL_POLICY:-missing|" \
        -e '/# No registry has this image/,/#   make image/d' "$kit/envoy/compose/compose.yaml"
fi
archive "$work" "sluice-$version" | gzip --no-name >"$folder/sluice-$version.tar.gz"

.ci/chart.sh "$helm" "$program" "$folder" ${repository:+"$repository" "$(digest edge)"}

(cd "$folder" && find . -type f -printf '%P\n' | sort | xargs sha256sum) >"$work/SHA256SUMS"
mv "$work/SHA256SUMS" "$folder"

repository=${repository:-REPOSITORY}
cat <<END
To publish it and to sign it:
  make push-release REPOSITORY=$repository
  cosign sign --recursive $repository/edge@$(digest edge)
  cosign sign $repository/filter@$(digest filter)
  helm push $folder/sluice-$version.tgz oci://$repository/charts
  cosign sign $repository/charts/sluice@DIGEST
  cosign sign-blob --bundle $folder/SHA256SUMS.sigstore.json $folder/SHA256SUMS
IMAGE=$image
END
