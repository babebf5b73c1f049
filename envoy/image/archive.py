# SPDX-License-Identifier: Apache-2.0
"""A layer's tar archive: one order, one time, so that the same files always give the same bytes."""

import io
import tarfile


class Archive:
    """Files, folders and links by their paths, which have no leading slash."""

    def __init__(self) -> None:
        self.entries: dict[str, tuple[tarfile.TarInfo, bytes]] = {}

    def file(self, path: str, content: bytes, mode: int = 0o644) -> None:
        """A file of root's, and the folders above it."""
        entry = tarfile.TarInfo(path)
        entry.mode = mode
        entry.size = len(content)
        self._put(entry, content)

    def folder(self, path: str, owner: int = 0, mode: int = 0o755) -> None:
        """A folder of this user's and their group's."""
        entry = tarfile.TarInfo(path)
        entry.type = tarfile.DIRTYPE
        entry.mode = mode
        entry.uid = entry.gid = owner
        self._put(entry, b"")

    def take(self, source: tarfile.TarFile, entry: tarfile.TarInfo) -> None:
        """An entry of another archive, with its owner and mode."""
        content = source.extractfile(entry).read() if entry.isreg() else b""
        kept = tarfile.TarInfo(entry.name.removeprefix("./").rstrip("/"))
        kept.type, kept.mode, kept.linkname = entry.type, entry.mode, entry.linkname
        kept.uid, kept.gid, kept.size = entry.uid, entry.gid, entry.size
        self._put(kept, content)

    def bytes(self) -> bytes:
        """The archive, sorted by path, so that a folder comes before what is in it."""
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
            for _, (entry, content) in sorted(self.entries.items()):
                tar.addfile(entry, io.BytesIO(content))
        return buffer.getvalue()

    def _put(self, entry: tarfile.TarInfo, content: bytes) -> None:
        above = entry.name.rpartition("/")[0]
        if above and above not in self.entries:
            self.folder(above)
        self.entries[entry.name] = (entry, content)
