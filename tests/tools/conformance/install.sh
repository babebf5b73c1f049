#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# install.sh NODE FOLDER: installs the suite that package-lock.json pins into FOLDER, either all of it or nothing.
set -euo pipefail
node=$1
part=$2.part
rm -rf "$part" "$2"
mkdir -p "$part"
trap 'rm -rf "$part"' EXIT
cp "$(dirname "$0")"/package{,-lock}.json "$part"
echo "installing the conformance suite from npm"
npm=$(dirname "$node")/../lib/node_modules/npm/bin/npm-cli.js
"$node" "$npm" ci --prefix "$part" --ignore-scripts --no-audit --no-fund --loglevel error >&2
mv "$part" "$2"
