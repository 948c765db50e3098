"""The requirements of a script that a job unpacks from a bucket: docs/reference/contracts.md.

The script itself is unpacked by the job's own command, as in the cloud. Here only its archive's requirement files are
read, to make its environment before it starts.
"""

import gzip
import hashlib
import os
import re
import shutil
import tarfile
import tempfile
import threading
import zlib
from dataclasses import dataclass, field
from pathlib import Path

from trainstack.jobs.images.dockerfile import ImageError
from trainstack.jobs.images.installs import Install, lines_of, names_a_path

VARIABLE = "TRAINMASTER_SCRIPT"
"""Names the archive, in the environment of a job that runs a script."""
INSTALLED = {"TRAINMASTER_REQUIREMENTS": "installed"}
"""Tells the job's command that the environment has what requirements.txt asks for."""
ARCHIVE_MAX_BYTES = 64 * 1024 * 1024
UNPACKED_MAX_BYTES = 256 * 1024 * 1024
MEMBERS_MAX = 10_000
MAX_KEPT = 20

_ARCHIVE = re.compile(r"gs://(?P<bucket>[^/]+)/(?P<name>(?:[^/]+/)*(?P<sha256>[0-9a-f]{64})\.tar\.gz)")
_REQUIREMENTS = (".trainmaster/requirements.txt", "requirements.txt")
"""Of these an archive's first counts: the packer's own, or the user's."""


@dataclass(frozen=True, kw_only=True)
class Scripts:
    """Unpacked archives below `folder`, read from the buckets, which are the folders of `buckets`.

    Threads may share it: parallel trials start with one archive at the same time. `folder` has one user.
    """

    buckets: Path
    folder: Path
    _unpacking: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)

    def install_of(self, archive_uri: str) -> Install | None:
        """What the requirements of the archive install.

        None without one, and for an archive that is missing, damaged or too large: the job's own command says why.

        Raises:
            ImageError: a requirement file cannot be read, or is too large; or the archive cannot be unpacked here.
        """
        match = _ARCHIVE.fullmatch(archive_uri)
        if match is None or ".." in archive_uri.split("/"):
            return None
        target = self.folder / match["sha256"]
        archive = self.buckets / match["bucket"] / match["name"]
        if not target.is_dir() and not archive.is_file():
            return None
        try:
            with self._unpacking:
                if not target.is_dir():
                    self._unpack(archive, match["sha256"])
                os.utime(target)  # the one that was not used for longest is removed first
        except (tarfile.TarError, gzip.BadGzipFile, EOFError, zlib.error):
            return None
        except OSError as error:
            raise ImageError(f"The script's archive {archive_uri} cannot be unpacked: {error}") from error
        path = next((path for name in _REQUIREMENTS if (path := target / name).is_file()), None)
        if path is None:
            return None
        content = tuple(lines_of(path))
        tree = target if any(map(names_a_path, content)) else None
        return Install(line=path.name, files=(path,), content=content, tree=tree, is_of_script=True)

    def _unpack(self, archive: Path, sha256: str) -> None:
        """Into a folder of that name, whole or not at all; empty if the archive has no requirements.txt."""
        with archive.open("rb") as file:
            if (
                archive.stat().st_size > ARCHIVE_MAX_BYTES
                or hashlib.file_digest(file, "sha256").hexdigest() != sha256
            ):
                raise tarfile.ReadError("it is not the archive that was submitted")
            file.seek(0)
            self._make_room()
            unfinished = Path(tempfile.mkdtemp(dir=self.folder, prefix=".unfinished-"))
            try:
                with tarfile.open(fileobj=file, mode="r:gz") as tar:
                    members = _read_members(tar)
                    if any(member.name in _REQUIREMENTS for member in members):
                        _write_files(tar, members, unfinished)
                unfinished.rename(self.folder / sha256)
            finally:
                shutil.rmtree(unfinished, ignore_errors=True)

    def _make_room(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        kept = sorted(self.folder.iterdir(), key=lambda path: path.stat().st_mtime)
        for path in kept[: max(0, len(kept) - MAX_KEPT + 1)]:
            shutil.rmtree(path, ignore_errors=True)


def _read_members(tar: tarfile.TarFile) -> list[tarfile.TarInfo]:
    """The archive's members; refuses one that would unpack to too much before it is unpacked."""
    members: list[tarfile.TarInfo] = []
    size = 0
    for member in tar:
        members.append(member)
        size += member.size
        if len(members) > MEMBERS_MAX or size > UNPACKED_MAX_BYTES:
            raise tarfile.ReadError("the archive is too large")
    return members


def _write_files(tar: tarfile.TarFile, members: list[tarfile.TarInfo], folder: Path) -> None:
    """Write the archive's files below `folder`; links and devices, which `submit` never packs, are left out.

    `extractall` is safe with such an archive only by its argument `filter`, which Python has since 3.11.4; Debian 12
    has 3.11.2.

    Raises:
        tarfile.ReadError: a name leads out of the folder.
    """
    for member in members:
        path = folder / member.name
        if ".." in path.parts or "\0" in member.name or not path.is_relative_to(folder):
            raise tarfile.ReadError(f"{member.name!r} is outside the archive's folder")
        if content := tar.extractfile(member) if member.isfile() else None:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                shutil.copyfileobj(content, file)
