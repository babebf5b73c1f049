#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# build-wasm.sh MODULE [OPTION...]: builds the filter's Wasm module, with further options of Cargo's. It takes rustup's
# target where it is installed or to be had within seconds, else Debian's toolchain, which builds the standard library
# from source.
set -euo pipefail
cd "$(dirname "$0")/.."
module=$1
options=("${@:2}")
target=wasm32-unknown-unknown
builds=${CARGO_TARGET_DIR:-target}
refused=.sluice/rustup-refused # the compiler for which rustup could not get the target: not tried again

is_debian() {
    grep -q '^ID=debian$' /etc/os-release 2>/dev/null
}

has_target() {
    [ -d "$(rustc --print target-libdir --target "$target" 2>/dev/null)" ]
}

add_target() {
    command -v rustup >/dev/null || return 1
    [ "$(cat "$refused" 2>/dev/null)" != "$(rustc --version)" ] || return 1
    local seconds=120
    ! is_debian || seconds=10
    echo "adding the Rust target $target (waiting $seconds s at most)"
    if timeout "$seconds" rustup --quiet target add "$target" >/dev/null 2>&1 && has_target; then
        return
    fi
    mkdir -p "$(dirname "$refused")"
    rustc --version >"$refused"
    return 1
}

RUSTFLAGS=$(.ci/rustflags.sh)
export RUSTFLAGS

build() { # CARGO FOLDER OPTION...
    "$1" build --locked --profile wasm --target "$target" -p sluice-filter --target-dir "$builds/$2" "${@:3}" \
        "${options[@]}"
    built=$builds/$2/$target/wasm/sluice_filter.wasm
}

if has_target || add_target; then
    with=$(rustc --version | cut -d' ' -f1,2)
    build cargo wasm-rustup
elif is_debian; then
    .ci/debian.sh rustc-web cargo-web rust-web-src lld
    with="Debian's $(/usr/bin/rustc --version | cut -d' ' -f1,2)"
    export RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1 CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=wasm-ld
    build /usr/bin/cargo wasm-debian -Zbuild-std=std,panic_abort
else
    echo "missing: the Rust target $target. To mend it: rustup target add $target" >&2
    exit 1
fi

mkdir -p "$(dirname "$module")"
if ! cmp -s "$built" "$module"; then
    cp "$built" "$module.part"
    mv "$module.part" "$module"
fi
echo "$(basename "$module"): $(wc -c <"$module") bytes, built with $with"
