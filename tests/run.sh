#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh ARGUMENT...: `cargo test` with these arguments, for all tests or for the tests whose names have a word of
# TESTS. Tests of real servers on a busy machine can fail because of the machine: a few that fail are run once more, one
# at a time. A test that fails twice fails. The tests that passed only the second time are counted and named at the end, and in the
# file RERUNS where it is set. More than two of one run are a fault of the tests or of the edge: in CI they fail, and
# elsewhere more than five do.
set -euo pipefail
cd "$(dirname "$0")/.."
log=$(mktemp)
trap 'rm -f "$log"' EXIT
most=5
[ -z "${CI:-}" ] || most=2

read -ra tests <<<"${TESTS:-}"
if cargo test --locked "$@" -- "${tests[@]}" 2>&1 | tee "$log"; then
    exit
fi
mapfile -t failed < <(sed -n 's/^---- \(.*\) stdout ----$/\1/p' "$log" | sort -u)
if [ ${#failed[@]} = 0 ] || [ ${#failed[@]} -gt "$most" ]; then
    echo "${#failed[@]} failed, and at most $most are run once more" >&2
    exit 1
fi
echo "failed, once more: ${failed[*]}" >&2
RUST_TEST_THREADS=1 cargo test --locked "$@" -- --exact "${failed[@]}"
printf '%s\n' "${failed[@]}" | sed "s/^/passed only the second time (${RUNTIME:-wasm}): /" | tee -a "${RERUNS:-/dev/null}" >&2
