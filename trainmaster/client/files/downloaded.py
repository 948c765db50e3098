"""The list that `trainmaster download` leaves in a folder: by it, `submit` knows what does not belong to a program."""

from collections.abc import Iterable
from pathlib import Path

LIST = ".trainmaster-download"
LIST_MAX_BYTES = 64 * 1024 * 1024


def add_downloaded(folder: Path, paths: Iterable[str]) -> None:
    """Add files, by their paths in the folder with '/', to the folder's list.

    Raises:
        OSError: it cannot be written.
    """
    listed = sorted(read_downloaded(folder) | set(paths))
    unfinished = folder / f"{LIST}.new"
    unfinished.write_text("".join(f"{path}\n" for path in listed), encoding="utf-8")
    unfinished.replace(folder / LIST)


def read_downloaded(folder: Path) -> frozenset[str]:
    """The paths on the folder's list, as `add_downloaded` got them; none without a list.

    Raises:
        OSError: it cannot be read.
    """
    try:
        with (folder / LIST).open("rb") as file:
            return frozenset(file.read(LIST_MAX_BYTES).decode("utf-8", "replace").splitlines())
    except FileNotFoundError:
        return frozenset()
