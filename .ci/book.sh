#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# book.sh MDBOOK FOLDER: builds the book of docs/SUMMARY.md into FOLDER.
# All pages of a book are in one folder, so the pages and the files that they link to are copied, each to its own
# path.
set -euo pipefail
cd "$(dirname "$0")/.."
mdbook=$1
book=$PWD/$2

source=$(mktemp -d)
trap 'rm -rf "$source"' EXIT
mkdir "$source/src"
cp docs/book.* "$source"
cp -R --parents ./*.md docs/*.md mesh bench/*.md bench/*.svg bench/peers bench/k6 filter/*.md filter/core/*.json \
    envoy/{compose,observability,policies,systemd} "$source/src"
sed -e 's|](|](docs/|' -e 's|docs/[.][.]/||' docs/SUMMARY.md >"$source/src/SUMMARY.md"
"$mdbook" build --dest-dir "$book" "$source"
