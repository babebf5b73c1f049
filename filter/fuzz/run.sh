#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh SECONDS [TARGET...]: fuzzes each target, by default all of them, for SECONDS, starting from the stored
# corpus. The coverage that guides it comes from flags of the stable compiler. New inputs, and inputs that fail, are
# written to .sluice/fuzz.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=$1
targets=("${@:2}")
host=$(rustc -vV | sed -n 's/^host: //p')
builds=${CARGO_TARGET_DIR:-target}

if [ ${#targets[@]} = 0 ]; then
    mapfile -t targets < <(sed -n 's/^name = "fuzz-\(.*\)"/\1/p' filter/fuzz/Cargo.toml)
fi
coverage=(-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-trace-compares
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table)
# NB: with a target named, the flags do not apply to build scripts.
RUSTFLAGS="${coverage[*]}" cargo build --quiet --locked --profile fuzz -p sluice-fuzz --target "$host"

fuzz() { # TARGET
    local target=$1 found=.sluice/fuzz/$1
    mkdir -p "$found"
    "$builds/$host/fuzz/fuzz-$target" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=1024 -print_final_stats=1 \
        -artifact_prefix="$found-" "$found" "filter/fuzz/corpus/$target" >"$found.log" 2>&1 || {
        tail -n 40 "$found.log"
        echo "fuzz $target: failed; filter/fuzz/run.sh 1 $target repeats it with what is in $found-*" >&2
        return 1
    }
    local runs
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$found.log")
    echo "fuzz $target: $runs inputs in $seconds s, no failure"
}

# One target for each processor at one time.
export builds host seconds
export -f fuzz
printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I{} bash -euo pipefail -c 'fuzz {}'
