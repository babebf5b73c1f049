#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# go-tool.sh MODULE PACKAGE BINARY [TAGS]: builds a Go package that the go.mod in folder MODULE pins. Prints a line
# now and then while the build takes long.
set -euo pipefail
module=$1 package=$2 tags=${4:-}
# No tool is debugged here. The tests need a short build of a control plane more than a fast one: without inlining the
# compiler takes a quarter less processor time.
flags=-dwarf=false
[[ $module != tests/* ]] || flags+=' -l'
mkdir -p "$(dirname "$3")"
binary=$(cd "$(dirname "$3")" && pwd)/$(basename "$3")
name=$(basename "$3")
cd "$(dirname "$0")/../$module"

echo "building $name from source, takes some minutes the first time"
CGO_ENABLED=0 GOWORK=off GOFLAGS=-mod=readonly \
    go build -trimpath -buildvcs=false -ldflags='-s -w' -gcflags="all=$flags" -tags="$tags" \
    -o "$binary.part" "$package" &
build=$!
seconds=0
trap 'kill "$build" 2>/dev/null || true; rm -f "$binary.part"' EXIT

while kill -0 "$build" 2>/dev/null; do
    sleep 1
    ((++seconds % 15)) || echo "  still building $name, $seconds s"
done
wait "$build"
mv "$binary.part" "$binary"
echo "built $name in $seconds s: $binary"
