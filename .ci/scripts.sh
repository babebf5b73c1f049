#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts.sh: prints the path of every shell script in the repository.
set -euo pipefail
cd "$(dirname "$0")/.."

find . \( -name .git -o -name .sluice -o -name target \) -prune -o -type f -print0 |
    xargs -0 awk 'FNR == 1 && /^#!.*sh$/ { print FILENAME } { nextfile }'
