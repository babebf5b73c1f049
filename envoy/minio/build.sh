#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# build.sh BINARY: builds the MinIO that go.mod pins, with a sign of life while it takes long.
set -euo pipefail
mkdir -p "$(dirname "$1")"
binary=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cd "$(dirname "$0")"

echo "building MinIO from source, takes some minutes the first time"
CGO_ENABLED=0 GOWORK=off GOFLAGS=-mod=readonly \
    go build -trimpath -buildvcs=false -ldflags='-s -w' -o "$binary.part" github.com/minio/minio &
build=$!
seconds=0
trap 'kill "$build" 2>/dev/null || true; rm -f "$binary.part"' EXIT

while kill -0 "$build" 2>/dev/null; do
    sleep 1
    ((++seconds % 15)) || echo "  still building MinIO, $seconds s"
done
wait "$build"
mv "$binary.part" "$binary"
echo "built MinIO in $seconds s: $binary"
