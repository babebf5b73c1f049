#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# rustflags.sh: prints options for rustc that keep this machine's folder names out of the output, so that the same
# sources give the same bytes on any machine.
set -euo pipefail
cd "$(dirname "$0")/.."

echo "${RUSTFLAGS:-} --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo --remap-path-prefix=$PWD=/sluice"
