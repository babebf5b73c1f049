#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# chromium.sh: prints the path of a Chromium or Chrome that works. Installs Debian's package if it may.
# CHROMIUM names the one to use.
set -euo pipefail
cd "$(dirname "$0")/.."

find_browser() {
    local name names=(chromium google-chrome google-chrome-stable chromium-browser)
    [ -z "${CHROMIUM:-}" ] || names=("$CHROMIUM")
    for name in "${names[@]}"; do
        # Ubuntu's chromium-browser may be a script that only names the snap to install.
        if "$name" --version >/dev/null 2>&1; then
            command -v "$name"
            return
        fi
    done
    return 1
}

find_browser && exit
if [ -z "${CHROMIUM:-}" ] && grep -q '^ID=debian$' /etc/os-release 2>/dev/null; then
    .ci/debian.sh chromium
    find_browser && exit
fi
echo "missing: Chromium or Chrome${CHROMIUM:+ at CHROMIUM=$CHROMIUM}. To fix it:" \
    "the package from https://www.google.com/chrome, or CHROMIUM=PATH" >&2
exit 1
