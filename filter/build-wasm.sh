#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# build-wasm.sh MODULE [OPTION...]: builds the filter's Wasm module, with further options of Cargo's.
set -euo pipefail
cd "$(dirname "$0")/.."

# Opt-level "z" inlines next to nothing. With this threshold a hit has one per cent more instructions than with "s", and
# Envoy compiles the module, which is a tenth smaller, in a fifth less processor time.
export RUSTFLAGS="${RUSTFLAGS:-} -Cllvm-args=-inline-threshold=40"
exec .ci/cross.sh wasm32-unknown-unknown wasm/sluice_filter.wasm "$1" --profile wasm -p sluice-filter "${@:2}"
