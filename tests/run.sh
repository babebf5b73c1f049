#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh ARGUMENT...: `cargo test` with these arguments, of all tests or of those whose names have a word of TESTS. Tests of
# real servers on a busy machine can fail for reasons of the machine's: a few that fail are run once more, one at a time,
# and named. What fails twice fails.
set -euo pipefail
cd "$(dirname "$0")/.."
log=$(mktemp)
trap 'rm -f "$log"' EXIT

read -ra tests <<<"${TESTS:-}"
if cargo test --locked "$@" -- "${tests[@]}" 2>&1 | tee "$log"; then
    exit
fi
mapfile -t failed < <(sed -n 's/^---- \(.*\) stdout ----$/\1/p' "$log" | sort -u)
if [ ${#failed[@]} = 0 ] || [ ${#failed[@]} -gt 5 ]; then
    exit 1
fi
echo "failed, once more: ${failed[*]}" >&2
RUST_TEST_THREADS=1 cargo test --locked "$@" -- --exact "${failed[@]}"
echo "passed only the second time: ${failed[*]}" >&2
