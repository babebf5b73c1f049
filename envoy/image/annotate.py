#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""annotate.py LAYOUT NAME=VALUE,...: annotates the index of many architectures in an image layout, whose only image it
is.
"""

import json
import pathlib
import sys

from provenance import compact, sha256


def main() -> None:
    """Replaces the index."""
    if len(sys.argv) != len(("annotate.py", "LAYOUT", "ANNOTATIONS")):
        raise SystemExit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    top = json.loads((folder / "index.json").read_text())
    [entry] = top["manifests"]
    blobs = folder / "blobs" / "sha256"
    former = blobs / entry["digest"].removeprefix("sha256:")
    index = json.loads(former.read_text())
    index["annotations"] = dict(pair.split("=", 1) for pair in sys.argv[2].split(","))
    former.unlink()
    content = compact(index)
    entry["digest"] = sha256(content)
    entry["size"] = len(content)
    (blobs / entry["digest"].removeprefix("sha256:")).write_bytes(content)
    (folder / "index.json").write_bytes(compact(top))


if __name__ == "__main__":
    main()
