# SPDX-License-Identifier: Apache-2.0
"""The contents of an image: a software bill of materials, https://cyclonedx.org/docs/1.6/json/"""

import datetime
import functools
import json
import subprocess
import uuid

from cyclonedx.factory.license import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

MEDIA_TYPE = "application/vnd.cyclonedx+json"


class Bill:
    """The bill of one image."""

    def __init__(self, name: str, version: str, digest: str, made: int):
        """Starts the bill of the image whose manifest has this digest; `made` is in seconds since 1970."""
        self.image = Component(
            type=ComponentType.CONTAINER,
            name=name,
            version=version,
            bom_ref=f"{name}@{digest}",
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest.removeprefix("sha256:"))],
            licenses=_licenses("Apache-2.0"),
        )
        # Not random, as the library's default is, so that the same image has the same bill.
        self.bom = Bom(serial_number=uuid.uuid5(uuid.NAMESPACE_OID, digest))
        self.bom.metadata.timestamp = datetime.datetime.fromtimestamp(made, datetime.timezone.utc)
        self.bom.metadata.component = self.image

    def add(self, purl: PackageURL, licenses: str | None = None, digest: str | None = None) -> None:
        """Adds a component with this name, version and SHA-256."""
        component = Component(
            type=ComponentType.LIBRARY,
            name=purl.name,
            version=purl.version,
            purl=purl,
            bom_ref=purl.to_string(),
            licenses=_licenses(licenses),
            hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)] if digest else [],
        )
        self.bom.components.add(component)
        self.bom.register_dependency(self.image, [component])

    def add_crates(self, crate: str, target: str) -> None:
        """Adds a crate of this workspace, and every crate that is linked into it for a target."""
        for package in linked(crate, target):
            purl = PackageURL("cargo", None, package["name"], package["version"])
            if purl.to_string() not in {component.bom_ref.value for component in self.bom.components}:
                self.add(purl, package["license"])

    def text(self) -> bytes:
        """The bill as JSON."""
        return JsonV1Dot6(self.bom).output_as_string(indent=1).encode()


@functools.cache
def linked(crate: str, target: str) -> list[dict]:
    """The output of `cargo metadata` for a crate and for the crates that are linked into it."""
    command = ["cargo", "metadata", "--format-version=1", "--locked", "--filter-platform", target]
    metadata = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    waiting = {identity for identity in metadata["workspace_members"] if packages[identity]["name"] == crate}
    found = set()
    while waiting:
        identity = waiting.pop()
        found.add(identity)
        needed = [link["pkg"] for link in nodes[identity]["deps"] if _is_for_running(link)]
        waiting |= {package for package in needed if not _is_macro(packages[package])} - found
    return [packages[identity] for identity in sorted(found)]


def _is_for_running(link: dict) -> bool:
    return any(kind["kind"] is None for kind in link["dep_kinds"])


def _is_macro(package: dict) -> bool:
    return package["targets"][0]["kind"] == ["proc-macro"]


def _licenses(expression: str | None) -> list:
    # crates.io used to accept "MIT/Apache-2.0".
    return [LicenseFactory().make_from_string(expression.replace("/", " OR "))] if expression else []
