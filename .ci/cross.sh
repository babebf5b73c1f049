#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cross.sh TARGET FILE OUTPUT OPTION...: builds for another target than this machine, with options of Cargo, and
# copies FILE from the target's build folder to OUTPUT. It uses rustup's target if it is installed or can be added
# within seconds. Otherwise it uses Debian's toolchain, and builds the standard library from source.
set -euo pipefail
cd "$(dirname "$0")/.."
target=$1 file=$2 output=$3
options=("${@:4}")
builds=${CARGO_TARGET_DIR:-target}
refused=.sluice/rustup-refused-$target # the compiler for which rustup could not get the target: it is not tried again

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
    ! is_debian || seconds=20
    echo "adding the Rust target $target (waiting $seconds s at most)"
    if timeout "$seconds" rustup --quiet target add "$target" >/dev/null 2>&1 && has_target; then
        return
    fi
    rustc --version >"$refused"
    return 1
}

# The linker of the target's programs. Debian's cross compilers are named after the machine.
case $target in
wasm32-*) linker=wasm-ld packages=(lld) ;;
aarch64-*) linker=aarch64-linux-gnu-gcc packages=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross) ;;
x86_64-*) linker=x86_64-linux-gnu-gcc packages=(gcc-x86-64-linux-gnu libc6-dev-amd64-cross) ;;
esac

use_linker() {
    command -v "$linker" >/dev/null || .ci/debian.sh "${packages[@]}"
    local name=${target//-/_}
    export "CARGO_TARGET_${name^^}_LINKER=$linker" "CC_$name=$linker"
}

RUSTFLAGS=$(.ci/rustflags.sh)
export RUSTFLAGS

# Of two builds side by side, one installs the toolchain.
mkdir -p .sluice
exec 8>.sluice/toolchain.lock
flock 8
if has_target || add_target; then
    with=$(rustc --version | cut -d' ' -f1,2)
    [ "$linker" = wasm-ld ] || use_linker # rustup's wasm target has its own linker
    cargo=cargo folder=cross-rustup toolchain=()
elif is_debian; then
    .ci/debian.sh rustc-web cargo-web rust-web-src
    with="Debian's $(/usr/bin/rustc --version | cut -d' ' -f1,2)"
    export RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1
    use_linker
    cargo=/usr/bin/cargo folder=cross-debian toolchain=('-Zbuild-std=std,panic_abort')
else
    echo "missing: the Rust target $target. To fix it: rustup target add $target" >&2
    exit 1
fi

exec 8>&-

"$cargo" build --locked --target "$target" --target-dir "$builds/$folder" "${toolchain[@]}" "${options[@]}"
built=$builds/$folder/$target/$file
mkdir -p "$(dirname "$output")"
if ! cmp -s "$built" "$output"; then
    cp "$built" "$output.part"
    mv "$output.part" "$output"
fi
echo "$(basename "$output") for $target: $(wc -c <"$output") bytes, built with $with"
