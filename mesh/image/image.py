#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""image.py MODULE FOLDER VERSION: writes the Wasm module as an OCI image layout into FOLDER, and prints its digest.

One layer with one file, plugin.wasm: the layout that Istio's agent takes for oci:// (the "compat" variant of
https://github.com/solo-io/wasm/blob/master/spec/spec-compat.md). The same module always gives the same digest.
"""

import gzip
import hashlib
import io
import json
import pathlib
import shutil
import sys
import tarfile


def layer(module: bytes) -> bytes:
    """A tar archive with the module, owned by root and from the beginning of time."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        entry = tarfile.TarInfo("plugin.wasm")
        entry.size = len(module)
        entry.mode = 0o644
        tar.addfile(entry, io.BytesIO(module))
    return archive.getvalue()


class Layout:
    """An OCI image layout."""

    def __init__(self, folder: pathlib.Path):
        shutil.rmtree(folder, ignore_errors=True)
        self.folder = folder
        self.blobs = folder / "blobs" / "sha256"
        self.blobs.mkdir(parents=True)

    def blob(self, media_type: str, content: bytes) -> dict:
        """Writes a blob and describes it."""
        digest = hashlib.sha256(content).hexdigest()
        (self.blobs / digest).write_bytes(content)
        return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}

    def document(self, media_type: str, document: dict) -> dict:
        """The same of a JSON document."""
        text = json.dumps(document, sort_keys=True, separators=(",", ":"))
        return self.blob(media_type, text.encode())

    def finish(self, manifest: dict) -> None:
        """Makes the layout one of this manifest."""
        index = {"schemaVersion": 2, "manifests": [manifest]}
        (self.folder / "index.json").write_text(json.dumps(index))
        (self.folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')


def main() -> None:
    module, folder, version = sys.argv[1:]
    plain = layer(pathlib.Path(module).read_bytes())
    layout = Layout(pathlib.Path(folder))
    packed = layout.blob("application/vnd.oci.image.layer.v1.tar+gzip", gzip.compress(plain, mtime=0))
    annotations = {
        "org.opencontainers.image.title": "sluice-filter",
        "org.opencontainers.image.version": version,
        "org.opencontainers.image.licenses": "Apache-2.0",
    }
    config = {
        "architecture": "wasm",
        "os": "wasi",
        "config": {"Labels": annotations},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(plain).hexdigest()}"]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": layout.document("application/vnd.oci.image.config.v1+json", config),
        "layers": [packed],
        "annotations": annotations,
    }
    described = layout.document(manifest["mediaType"], manifest)
    layout.finish(described)
    print(described["digest"])


if __name__ == "__main__":
    main()
