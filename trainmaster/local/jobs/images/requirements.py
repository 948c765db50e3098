"""Requirement files of pip, as far as what they need has to be known before they are installed.

Source: https://pip.pypa.io/en/stable/reference/requirements-file-format/, read 2026-11.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from trainmaster.local.jobs.images.dockerfile import ImageError

MAX_BYTES = 1024 * 1024
MAX_FILES = 50
"""One file, and those that it names, and so on."""

_NESTED = re.compile(r"(?:-r|-c|--requirement|--constraint)[= ]?\s*(\S+)")
_PATH = re.compile(r"(-e|--editable|-f|--find-links)\b.*|\.{0,2}/.*|[^\s:]+\.(whl|tar\.gz|zip)\b.*")


def lines_of(path: Path) -> Iterator[str]:
    """The lines of a requirement file and of those that it names, without comments.

    Raises:
        ImageError: a file cannot be read, or they are too large or too many.
    """
    waiting, seen = [path], {path}
    while waiting:
        text = text_of(waiting.pop()).replace("\\\n", " ")
        for raw in text.splitlines():
            line = re.sub(r"(^|\s)#.*", "", raw).strip()
            if line:
                yield line
            if found := _NESTED.fullmatch(line):
                other = (path.parent / found[1]).resolve()
                if other not in seen and other.is_file():
                    seen.add(other)
                    waiting.append(other)
        if len(seen) > MAX_FILES:
            raise ImageError(f"{path} and the files that it names are more than {MAX_FILES}")


def need_of(line: str) -> str | None:
    """The requirement of a line; empty where it asks for nothing here, None where only pip or uv can tell.

    The lines of a file that a line names follow it in `lines_of`.
    """
    if _NESTED.fullmatch(line):
        return ""
    try:
        need = Requirement(line.partition(" --hash")[0])
    except InvalidRequirement:
        return None
    if need.marker is not None and not need.marker.evaluate():
        return ""
    need.marker = None
    return None if need.url else str(need)


def names_a_path(line: str) -> bool:
    """Whether a line means something beside the file: a folder or an archive."""
    return bool(_PATH.fullmatch(line)) and "://" not in line


def text_of(path: Path, *, max_bytes: int | None = None) -> str:
    """The text of a file that declares packages.

    Raises:
        ImageError: it cannot be read, or has more than `max_bytes`, else MAX_BYTES.
    """
    max_bytes = MAX_BYTES if max_bytes is None else max_bytes
    try:
        with path.open("rb") as file:
            raw = file.read(max_bytes + 1)
    except OSError as error:
        raise ImageError(f"{path} cannot be read: {error.strerror}") from error
    if len(raw) > max_bytes:
        raise ImageError(f"{path} has more than {max_bytes} bytes")
    return raw.decode("utf-8", "replace")
