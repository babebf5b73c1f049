# SPDX-License-Identifier: Apache-2.0
"""An image on disk: https://github.com/opencontainers/image-spec/blob/v1.1.1/image-layout.md"""

import gzip
import hashlib
import json
import pathlib
import shutil

IMAGE = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
EMPTY = "application/vnd.oci.empty.v1+json"


def sha256(content: bytes) -> str:
    """The digest of a blob."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def compact(document: dict) -> bytes:
    """The one JSON text of a document."""
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


class Layout:
    """One manifest and its blobs. The same content always gives the same digests."""

    def __init__(self, folder: pathlib.Path):
        shutil.rmtree(folder, ignore_errors=True)
        self.folder = folder
        self.blobs = folder / "blobs" / "sha256"
        self.blobs.mkdir(parents=True)

    def blob(self, media_type: str, content: bytes) -> dict:
        """Writes a blob and describes it."""
        digest = sha256(content)
        (self.blobs / digest.removeprefix("sha256:")).write_bytes(content)
        return {"mediaType": media_type, "digest": digest, "size": len(content)}

    def image(self, config: dict, layers: list[bytes], annotations: dict, tag: str) -> dict:
        """Makes it the image with these layers, which are tar archives, and describes its manifest."""
        config = config | {"rootfs": {"type": "layers", "diff_ids": [sha256(layer) for layer in layers]}}
        return self._finish(
            {
                "config": self.blob(CONFIG, compact(config)),
                "layers": [self.blob(LAYER, gzip.compress(layer, 6, mtime=0)) for layer in layers],
                "annotations": annotations,
            },
            {"org.opencontainers.image.ref.name": tag},
        )

    def referrer(self, media_type: str, document: bytes, subject: dict, annotations: dict) -> dict:
        """Makes it a document on an image, which registries list with the image, and describes its manifest."""
        return self._finish(
            {
                "artifactType": media_type,
                "config": self.blob(EMPTY, b"{}"),
                "layers": [self.blob(media_type, document)],
                "subject": subject,
                "annotations": annotations,
            },
            {},
        )

    def _finish(self, manifest: dict, annotations: dict) -> dict:
        manifest = {"schemaVersion": 2, "mediaType": IMAGE} | manifest
        described = self.blob(IMAGE, compact(manifest))
        index = {"schemaVersion": 2, "manifests": [described | {"annotations": annotations}]}
        (self.folder / "index.json").write_bytes(compact(index))
        (self.folder / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
        return described
