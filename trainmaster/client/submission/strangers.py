"""What lies in a script's folder and does not belong to the program: a stack's state, downloads, keys."""

import re
from enum import StrEnum
from pathlib import Path

from trainmaster.client.files.downloaded import LIST, read_downloaded

KEY_MAX_BYTES = 64 * 1024
_KEY_FILES = frozenset({".json", ".key", ".pem"})
_KEY_STORES = frozenset({".p12", ".pfx"})
_KEY = re.compile(rb'-----BEGIN [A-Z ]*PRIVATE KEY-----|"refresh_token"\s*:')
"""Of a service account's key as of any other, and of a user's own credentials, as gcloud writes them."""


class Why(StrEnum):
    """Why a file or folder is not packed, in words that follow `Not packed, because`."""

    LINK = "links to folders are not followed"
    BROKEN = "it is a link to something that does not exist"
    SPECIAL = "it is neither a file nor a folder, but for example a named pipe"
    STATE = "a local stack runs or has run there"
    DOWNLOADED = f"trainmaster download put it there (to pack it, delete {LIST} beside it)"
    KEY = "it holds a key (a job has its own account and needs none; name other secrets in Secret Manager)"


class Downloads:
    """The downloaded files below a folder, by the lists in its folders, as far as `enter` has read them."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._from: dict[Path, Path] = {}

    def enter(self, folder: Path) -> None:
        """Read the folder's list.

        Raises:
            OSError: it cannot be read.
        """
        for path in read_downloaded(folder):
            self._from[folder / path] = folder

    def holds(self, path: Path) -> bool:
        """Whether the file was downloaded."""
        return path in self._from

    def shown(self, path: Path) -> str:
        """The folder that the file was downloaded to, or the file itself if that is the whole folder."""
        folder = self._from[path]
        if folder == self._root:
            return path.relative_to(self._root).as_posix()
        return f"{folder.relative_to(self._root).as_posix()}/"


def holds_key(path: Path, size_bytes: int) -> bool:
    """Whether the file is a key or other credentials, by its name and its content.

    Raises:
        OSError: it cannot be read.
    """
    suffix = path.suffix.lower()
    if suffix in _KEY_STORES:
        return True
    if suffix not in _KEY_FILES or size_bytes > KEY_MAX_BYTES:
        return False
    with path.open("rb") as file:
        return _KEY.search(file.read(KEY_MAX_BYTES)) is not None
