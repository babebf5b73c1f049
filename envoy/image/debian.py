# SPDX-License-Identifier: Apache-2.0
"""Debian's packages below the edge's image, as debian.txt pins them."""

import hashlib
import io
import pathlib
import re
import subprocess
import tarfile
import urllib.request
from typing import NamedTuple

from archive import Archive
from packageurl import PackageURL

# Where a package is while its release has it, and afterwards.
MIRRORS = (
    "https://deb.debian.org/debian/",
    "https://snapshot.debian.org/archive/debian/20260901T000000Z/",
)
# Nothing reads these there. What says the licence of a package stays.
LEFT_OUT = re.compile(r"usr/share/(?!doc/[^/]+/copyright$)(doc|lintian|man|info)/|usr/lib/[^/]+/gconv/")


class Package(NamedTuple):
    """A line of debian.txt: its fields, and the SHA-256 of the file at this path of a mirror."""

    architecture: str
    name: str
    version: str
    path: str
    sha256: str

    @property
    def purl(self) -> PackageURL:
        """Its name in bills of materials."""
        return PackageURL("deb", "debian", self.name, self.version, {"arch": self.architecture, "distro": "debian-12"})

    def fetched(self, cache: pathlib.Path) -> pathlib.Path:
        """Its file, from the cache or from the first mirror that has it."""
        file = cache / pathlib.PurePosixPath(self.path).name
        if file.is_file() and self._is(file.read_bytes()):
            return file
        content = self._downloaded()
        cache.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(".part")
        part.write_bytes(content)
        part.rename(file)
        return file

    def _is(self, content: bytes) -> bool:
        return hashlib.sha256(content).hexdigest() == self.sha256

    def _downloaded(self) -> bytes:
        answers = []
        for mirror in MIRRORS:
            try:
                with urllib.request.urlopen(mirror + self.path, timeout=60) as response:
                    content = response.read()
            except OSError as error:
                answers.append(f"{mirror + self.path}: {error}")
                continue
            if self._is(content):
                return content
            answers.append(f"{mirror + self.path}: not the SHA-256 {self.sha256} of debian.txt")
        raise SystemExit("\n".join([f"{self.name} {self.version} is not to be had:", *answers]))


def pinned(architecture: str) -> list[Package]:
    """The packages for an architecture, as Debian names it."""
    lines = pathlib.Path(__file__).with_name("debian.txt").read_text().splitlines()
    packages = [Package(*line.split()) for line in lines if line and not line.startswith("#")]
    return [package for package in packages if package.architecture == architecture]


def unpack(file: pathlib.Path, package: Package, archive: Archive) -> None:
    """Puts a package's files into an archive, with the entry by which scanners know it (as distroless images do)."""
    content = subprocess.run(["dpkg-deb", "--fsys-tarfile", file], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        for entry in tar:
            if entry.name.strip("./") and not LEFT_OUT.match(entry.name.removeprefix("./")):
                archive.take(tar, entry)
    fields = subprocess.run(["dpkg-deb", "--field", file], check=True, capture_output=True).stdout
    archive.file(f"var/lib/dpkg/status.d/{package.name}", fields)
