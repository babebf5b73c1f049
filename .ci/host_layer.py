#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""host_layer.py: fails when the host layer grows, or when code outside of it calls the host.

The host layer is the crate of the module, the only one that calls an imported function or the SDK. It cannot be tested
natively, so it stays small: at most BOUND lines without comments, blank lines and tests.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).parent.parent
LAYER = ROOT / "filter/wasm/src"
BOUND = 900
CALLS = re.compile(r'proxy_wasm::|^proxy-wasm\b|extern "C"|wasm_import_module')


def code(file):
    """The lines of a file that are code."""
    lines = file.read_text(encoding="utf-8").split("#[cfg(test)]\nmod tests {")[0].splitlines()
    return [line for line in lines if line.strip() and not line.strip().startswith("//")]


def main():
    """Prints what is wrong with the host layer."""
    errors = []
    lines = sum(len(code(file)) for file in LAYER.rglob("*.rs"))
    if lines > BOUND:
        errors.append(f"filter/wasm/src: {lines} lines of code; at most {BOUND} can be without native tests")
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
