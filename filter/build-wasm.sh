#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# build-wasm.sh MODULE [OPTION...]: builds the filter's Wasm module, with further options of Cargo's.
set -euo pipefail
cd "$(dirname "$0")/.."

exec .ci/cross.sh wasm32-unknown-unknown wasm/sluice_filter.wasm "$1" --profile wasm -p sluice-filter "${@:2}"
