"""Entries of a script's folder that do not belong to the program: a stack's state, downloads, secrets."""

from enum import StrEnum
from pathlib import Path

from trainmaster.client.files.downloaded import LIST, read_downloaded


class Why(StrEnum):
    """Why a file or folder is not packed, in words that follow `Not packed, because`."""

    LINK = "links to folders are not followed"
    BROKEN = "it is a link to something that does not exist"
    SPECIAL = "it is neither a file nor a folder, but for example a named pipe"
    STATE = "a local stack runs or has run there"
    DOWNLOADED = f"trainmaster download put it there (to pack it, delete {LIST} beside it)"
    CONFIDENTIAL = (
        "it seems to hold a secret (a job has its own account and needs no key; the program can read others from "
        "Secret Manager; to pack it all the same: --include NAME)"
    )


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
