#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# texts.sh: fails when a file mentions a folder outside the repository.
set -euo pipefail
cd "$(dirname "$0")/.."

# The brackets keep this line from matching itself.
if grep -rInE --exclude-dir={.git,.sluice,target} --exclude=.git '[.][.]/[s]hared|/[w]ork/' .; then
    echo "the lines above mention a folder that is not in the repository" >&2
    exit 1
fi
