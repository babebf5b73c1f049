#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# rustflags.sh: prints options for rustc that keep this machine's folders out of what it builds, so that the same
# sources give the same bytes anywhere.
set -euo pipefail
cd "$(dirname "$0")/.."

echo "${RUSTFLAGS:-} --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo --remap-path-prefix=$PWD=/sluice"
