#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""abi.py ENVOY: fails when the native module declares other names or another version of the ABI than Envoy's binary.

Envoy exports the callbacks by name, and looks up each event hook by name. It ignores a hook of another name without
an error. The binary has no types: the types of the arguments and the values of the enums are not checked here.
"""

import pathlib
import re
import sys

DECLARED = pathlib.Path(__file__).parent.parent / "filter/native/src/abi.rs"
HOOKS = r"envoy_dynamic_module_on_(?:program_init|http_filter_\w+)"


def main():
    """Prints the differences between the declarations and the binary."""
    rust = re.sub(r"//[^\n]*", "", DECLARED.read_text(encoding="utf-8"))
    binary = pathlib.Path(sys.argv[1]).read_bytes()
    names = {name.decode() for name in re.findall(rb"(?<=\0)envoy_dynamic_module_\w+(?=\0)", binary)}
    callbacks = set(re.findall(r"\bfn (envoy_dynamic_module_callback_\w+)", rust))
    declared = set(re.findall(rf"\b({HOOKS})\(", rust))
    wanted = {name for name in names if re.fullmatch(HOOKS, name)}
    version = re.search(r'VERSION: &CStr = c"([^"]+)"', rust).group(1)
    if not callbacks or not wanted:
        sys.exit(f"{sys.argv[1]}: no names of the ABI in it or in {DECLARED.name}")
    errors = [f"{name}: Envoy has no such callback" for name in sorted(callbacks - names)]
    errors += [f"{name}: Envoy calls no such hook" for name in sorted(declared - wanted)]
    errors += [f"{name}: a hook of Envoy's that is not exported" for name in sorted(wanted - declared)]
    if f"\0{version}\0".encode() not in binary:
        errors.append(f"{version}: not the version of Envoy's ABI")
    if errors:
        print("\n".join(errors), file=sys.stderr)
    sys.exit(bool(errors))


if __name__ == "__main__":
    main()
