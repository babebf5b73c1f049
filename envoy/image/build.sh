#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# build.sh CRANE PARTS CACHE FOLDER ARCHITECTURE...: makes the images below FOLDER from the files in PARTS, and prints
# their digests. The same parts always give the same digests. The variable SOURCE is the URL of the source code, which
# the images name if it is set.
#
# FOLDER/edge is the standalone edge for these architectures: Debian's C library, Envoy and the edge, without a shell
# and a package manager. FOLDER/filter is the Wasm module for Istio's agents. Their documents are beside them.
set -euo pipefail
umask 022
export LC_ALL=C
crane=$1 parts=$2 cache=$3 folder=$4
architectures=("${@:5}")
here=$(dirname "$0")
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/../../Cargo.toml")
revision=$(git -C "$here" rev-parse HEAD 2>/dev/null || echo unknown)
[ -z "$(git -C "$here" status --porcelain 2>/dev/null)" ] || revision=$revision-dirty

created=$(date --utc --date="@$(git -C "$here" log -1 --format=%ct 2>/dev/null || echo 0)" +%Y-%m-%dT%H:%M:%SZ)

work=$(mktemp -d)
"$crane" registry serve --address 127.0.0.1:0 2>"$work/registry.log" &
registry_process=$!
trap 'kill "$registry_process" 2>/dev/null || true; rm -rf "$work"' EXIT
until port=$(sed -n 's/.*serving on port //p' "$work/registry.log") && [ -n "$port" ]; do
    kill -0 "$registry_process" # it may have failed
    sleep 0.1
done
registry=127.0.0.1:$port

quietly() { # COMMAND...: shows the command's output only if it fails
    "$@" >"$work/log" 2>&1 || {
        cat "$work/log" >&2
        return 1
    }
}

archive() { # TAR-OPTION...: writes or appends to $work/layer.tar, owned by root unless an option says otherwise
    tar --format=ustar --sort=name --mtime=@0 --numeric-owner --file "$work/layer.tar" "$@"
}

layer() { # NAME: compresses the archive
    gzip --no-name --stdout "$work/layer.tar" >"$work/$1.tar.gz"
    rm "$work/layer.tar"
}

annotations() { # TITLE: the annotations of the image with this title, which are also its labels
    local name=org.opencontainers.image description='A caching edge for S3 buckets and HTTP servers'
    [ "$1" = sluice ] || description='The filter of Sluice for the proxies of Istio'
    printf %s "$name.title=$1,$name.description=$description,$name.version=$version,$name.revision=$revision"
    printf %s ",$name.created=$created,$name.licenses=Apache-2.0${SOURCE:+,$name.source=$SOURCE}"
}

image() { # NAME TITLE OS ARCHITECTURE CONFIG LAYER...: pushes the image to the registry
    local tag=$registry/$1:$4 layers=("${@:6}") annotations
    "$here/layout.py" "$work/begin" "$3" "$4" ${5:+"$5"}
    quietly "$crane" push "$work/begin" "$tag"
    layers=("${layers[@]/#/--new_layer=$work/}")
    quietly "$crane" append --base "$tag" --new_tag "$tag" "${layers[@]/%/.tar.gz}"
    annotations=$(annotations "$2")
    quietly "$crane" mutate "$tag" --annotation "$annotations" --label "$annotations"
}

edge() { # ARCHITECTURE
    local root=$work/$1
    "$here/base.sh" "$1" "$cache" "$root/base"
    archive --create --owner=0 --group=0 --directory "$root/base" .
    mkdir -p "$root/volume/var/lib/sluice"
    archive --append --owner=65532 --group=65532 --directory "$root/volume" var/lib/sluice
    layer base
    install -D "$parts/$1/envoy" "$root/envoy/usr/local/bin/envoy"
    archive --create --owner=0 --group=0 --directory "$root/envoy" usr
    layer envoy
    install -D "$parts/$1/sluice" "$root/edge/usr/local/bin/sluice"
    install -D --mode=644 "$parts/sluice.wasm" "$root/edge/usr/local/lib/sluice/sluice.wasm"
    install -D --mode=644 "$parts/$1/sluice.so" "$root/edge/usr/local/lib/sluice/sluice.so"
    archive --create --owner=0 --group=0 --directory "$root/edge" usr
    layer edge
    image edge sluice linux "$1" "$here/config.json" base envoy edge
}

filter() {
    # One layer with one file, plugin.wasm: the layout that Istio's agent accepts for oci:// (the "compat" variant
    # of https://github.com/solo-io/wasm/blob/master/spec/spec-compat.md).
    install -D --mode=644 "$parts/sluice.wasm" "$work/filter/plugin.wasm"
    archive --create --owner=0 --group=0 --directory "$work/filter" plugin.wasm
    layer filter
    image filter sluice-filter wasi wasm "" filter
}

keep() { # NAME TAG TITLE: writes the image below the folder, under the name that `podman load` gives it, and prints its digest
    rm -rf "${folder:?}/$1"
    "$crane" pull --format=oci --annotate-ref "$registry/$1:$2" "$folder/$1"
    sed -i "s|$registry/$1:$2|$3:$version|" "$folder/$1/index.json"
    # crane annotates images only.
    [ "$2" != index ] || "$here/annotate.py" "$folder/$1" "$(annotations "$3")"
    echo "$1@$(tr -d ' \n' <"$folder/$1/index.json" | sed 's/.*"digest":"\([^"]*\)".*/\1/')"
}

for architecture in "${architectures[@]}"; do
    edge "$architecture"
done
quietly "$crane" index append "${architectures[@]/#/--manifest=$registry/edge:}" --tag "$registry/edge:index"
filter
mkdir -p "$folder"
keep edge index sluice
keep filter wasm sluice-filter
"$here/documents.py" "$folder" "$cache"
