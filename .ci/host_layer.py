#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""host_layer.py: fails when the host layer grows, or when code outside of it calls the host.

The host layers are the crates of the two modules, the only ones that call an imported function or the SDK. They cannot
be tested natively, so each stays small: at most so many lines without comments, blank lines and tests. All `unsafe`
code of the native module is in one file.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).parent.parent
LAYERS = {"filter/wasm/src": 900, "filter/native/src": 2950}
UNSAFE = ROOT / "filter/native/src/abi.rs"
CALLS = re.compile(r'proxy_wasm::|^proxy-wasm\b|extern "C"|wasm_import_module')


def code(file):
    """The lines of code in a file."""
    lines = file.read_text(encoding="utf-8").split("#[cfg(test)]\nmod tests {")[0].splitlines()
    return [line for line in lines if line.strip() and not line.strip().startswith("//")]


def main():
    """Prints the faults of the host layer."""
    errors = []
    for layer, bound in LAYERS.items():
        lines = sum(len(code(file)) for file in (ROOT / layer).rglob("*.rs"))
        if lines > bound:
            errors.append(f"{layer}: {lines} lines of code; at most {bound} can be without native tests")
    for file in UNSAFE.parent.rglob("*.rs"):
        if file != UNSAFE and any(re.search(r"\bunsafe\b", line) for line in code(file)):
            errors.append(f"{file.relative_to(ROOT)}: unsafe code; it belongs to {UNSAFE.name}")
    for crate in ("core", "roles", "fake"):
        files = [*(ROOT / "filter" / crate / "src").rglob("*.rs"), ROOT / "filter" / crate / "Cargo.toml"]
        for file in files:
            found = [line.strip() for line in code(file) if CALLS.search(line)]
            errors += [f"{file.relative_to(ROOT)}: calls the host: {line}" for line in found]
    if errors:
        print("\n".join(errors), file=sys.stderr)
    sys.exit(bool(errors))


if __name__ == "__main__":
    main()
