# SPDX-License-Identifier: Apache-2.0
"""The sources of an image, as an in-toto statement: https://slsa.dev/spec/v1.0/provenance"""

import hashlib
import json
import pathlib
import subprocess

MEDIA_TYPE = "application/vnd.in-toto+json"
BUILD_TYPE = "https://sluice.invalid/make-image/v1"


class Source:
    """The commit of this work tree, or nothing outside of a Git repository."""

    def __init__(self) -> None:
        self.commit = _output("git", "rev-parse", "HEAD")
        self.made = int(_output("git", "log", "-1", "--format=%ct") or 0)
        self.changed = bool(_output("git", "status", "--porcelain"))

    @property
    def revision(self) -> str:
        """The commit, marked if the work tree differs from it."""
        return self.commit + ("-dirty" if self.changed else "") if self.commit else "unknown"


def sha256(content: bytes) -> str:
    """The digest of a blob."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def compact(document: dict) -> bytes:
    """The canonical JSON text of a document."""
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def statement(name: str, digest: str, source: Source, materials: list[dict]) -> bytes:
    """The statement about an image's manifest; materials are in-toto's resource descriptors."""
    made_from = [{"name": "source", "digest": {"gitCommit": source.commit}}] if source.commit else []
    return compact(
        {
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"name": name, "digest": {"sha256": digest.removeprefix("sha256:")}}],
            "predicateType": "https://slsa.dev/provenance/v1",
            "predicate": {
                "buildDefinition": {
                    "buildType": BUILD_TYPE,
                    "externalParameters": {"target": "image", "revision": source.revision},
                    "internalParameters": {"rustc": _output("rustc", "--version")},
                    "resolvedDependencies": made_from + materials,
                },
                "runDetails": {"builder": {"id": BUILD_TYPE}},
            },
        }
    )


def material(path: pathlib.Path, folder: pathlib.Path) -> dict:
    """A file as a resource descriptor, named by its path from a parent folder."""
    return {
        "name": path.relative_to(folder).as_posix(),
        "digest": {"sha256": sha256(path.read_bytes()).removeprefix("sha256:")},
    }


def _output(*command: str) -> str:
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
