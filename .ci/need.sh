#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# need.sh TOOL...: checks for tools that the Makefile does not install.
# Names a missing tool in one line, with the command that installs it.
set -euo pipefail
cd "$(dirname "$0")/.."

missing() {
    echo "missing: $1. To fix it: $2" >&2
    exit 1
}

at_least() { # VERSION MINIMUM
    printf '%s\n' "$2" "$1" | sort -CV
}

need_rust() {
    local wanted mend='curl -sSf https://sh.rustup.rs | sh'
    wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    command -v rustc >/dev/null || missing "Rust $wanted or later (rustc)" "$mend"
    command -v cargo >/dev/null || missing "Rust $wanted or later (cargo)" "$mend"
    at_least "$(rustc --version | cut -d' ' -f2)" "$wanted" ||
        missing "Rust $wanted or later ($(rustc --version) is too old)" "rustup update, or $mend"
    command -v cc >/dev/null || .ci/debian.sh gcc libc6-dev
}

need_cxx() {
    command -v c++ >/dev/null || .ci/debian.sh g++
}

need_ip() {
    command -v ip >/dev/null || .ci/debian.sh iproute2
}

need_rust_linters() {
    cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 ||
        timeout 120 rustup component add rustfmt clippy ||
        missing 'rustfmt or clippy' 'rustup component add rustfmt clippy'
}

go_for() { # MODULE: a folder
    local wanted found
    wanted=$(sed -n 's/^go //p' "$1/go.mod")
    command -v go >/dev/null || missing "Go $wanted or later" 'see https://go.dev/doc/install'
    # Go downloads a later release of Go if the user allows it.
    found=$(cd "$1" && go version 2>/dev/null | sed 's/.* go\([0-9.]*\).*/\1/') || true
    at_least "${found:-0}" "$wanted" ||
        missing "Go $wanted or later ($(go env GOVERSION) is too old)" 'see https://go.dev/doc/install'
}

need_go() {
    go_for envoy/minio
    go_for tests/tools/prometheus
    go_for tests/tools/versitygw
}

need_go_for_bench() {
    go_for bench/tools/k6
}

need_go_for_mesh() {
    local module
    for module in tests/tools/*/go.mod envoy/image/go.mod; do
        # No required check needs Envoy Gateway, which wants the latest Go.
        [ "$module" = tests/tools/envoy-gateway/go.mod ] || go_for "$(dirname "$module")"
    done
}

need_go_for_envoy_gateway() {
    go_for tests/tools/envoy-gateway
}

need_python() {
    command -v python3 >/dev/null || missing 'Python 3' 'apt-get install python3 python3-venv'
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
        missing "Python 3.10 or later ($(python3 --version) is too old)" 'see https://www.python.org/downloads'
    python3 -m pip --version >/dev/null 2>&1 || python3 -c 'import ensurepip' 2>/dev/null ||
        .ci/debian.sh python3-venv
}

for tool; do
    "need_${tool//-/_}"
done
