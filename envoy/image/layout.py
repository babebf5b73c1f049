#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""layout.py FOLDER OS ARCHITECTURE [CONFIG]: writes an image without layers, on which crane builds. The image has the
fields for which crane has no options: a date, volumes, a health check.

FOLDER is an image layout: https://github.com/opencontainers/image-spec/blob/v1.1.1/image-layout.md
"""

import datetime
import json
import pathlib
import shutil
import sys

from provenance import Source, compact, sha256

IMAGE = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"


def write(folder: pathlib.Path, config: tuple[str, bytes], layers: list[tuple[str, bytes]], **fields: object) -> None:
    """Writes a manifest with these fields, its config and its layers, each a media type and its content."""
    shutil.rmtree(folder, ignore_errors=True)
    blobs = folder / "blobs" / "sha256"
    blobs.mkdir(parents=True)

    def blob(media_type: str, content: bytes) -> dict:
        digest = sha256(content)
        (blobs / digest.removeprefix("sha256:")).write_bytes(content)
        return {"mediaType": media_type, "digest": digest, "size": len(content)}

    manifest = {"schemaVersion": 2, "mediaType": IMAGE, **fields, "config": blob(*config)}
    manifest["layers"] = [blob(*layer) for layer in layers]
    index = {"schemaVersion": 2, "manifests": [blob(IMAGE, compact(manifest))]}
    (folder / "index.json").write_bytes(compact(index))
    (folder / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')


def main() -> None:
    """Writes the image."""
    if len(sys.argv) not in (4, 5):
        raise SystemExit(__doc__)
    folder, system, architecture, *config = sys.argv[1:]
    image = {
        "created": datetime.datetime.fromtimestamp(Source().made, datetime.timezone.utc).isoformat(),
        "os": system,
        "architecture": architecture,
        "config": json.loads(pathlib.Path(*config).read_text()) if config else {},
        "rootfs": {"type": "layers", "diff_ids": []},
    }
    write(pathlib.Path(folder), (CONFIG, compact(image)), [])


if __name__ == "__main__":
    main()
