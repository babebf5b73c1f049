#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# build-native.sh MODULE [OPTION...]: builds the filter's native module for this machine, with further options of Cargo's.
set -euo pipefail
cd "$(dirname "$0")/.."

builds=${CARGO_TARGET_DIR:-target}
RUSTFLAGS=$(.ci/rustflags.sh)
export RUSTFLAGS
cargo build --locked --profile native --target-dir "$builds/native-module" -p sluice-native "${@:2}"
built=$builds/native-module/native/libsluice_native.so
mkdir -p "$(dirname "$1")"
if ! cmp -s "$built" "$1"; then
    cp "$built" "$1.part"
    mv "$1.part" "$1"
fi
echo "$(basename "$1"): $(wc -c <"$1") bytes"
