"""Requirement files of pip, as far as what they need has to be known before they are installed.

Source: https://pip.pypa.io/en/stable/reference/requirements-file-format/, read 2026-11.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from trainmaster.local.jobs.images.dockerfile import ImageError

MAX_BYTES = 1024 * 1024
"""Of a file, and of all those that it names, and so on."""
MAX_FILES = 50
MAX_LINES = 20_000
MAX_CHARS = 64 * 1024
"""Of their lines without comments and hashes. Locks of large projects have 20,000 characters, and 20 times as many of
hashes."""
MAX_NEED_CHARS = 2000
"""Of one requirement."""
MAX_DOTS = 1000
"""In a line of a TOML file."""
_HASHES = re.compile(r"\s--hash[ =]")

_NESTED = re.compile(r"(?:-r|-c|--requirement|--constraint)[= ]?\s*(\S+)")
_PATH = re.compile(r"(-e|--editable|-f|--find-links)\b.*|\.{0,2}/.*|[^\s:]+\.(whl|tar\.gz|zip)\b.*")


def lines_of(path: Path) -> Iterator[str]:
    """The lines of a requirement file and of those that it names, without comments.

    Raises:
        ImageError: a file cannot be read, or they are too large or too many.
    """
    waiting, seen = [path], {path}
    size = chars = count = 0
    while waiting:
        text = text_of(waiting.pop(), max_bytes=MAX_BYTES - size)
        size += len(text)
        for raw in text.replace("\\\n", " ").splitlines():
            line = re.sub(r"(^|\s)#.*", "", raw).strip()
            count += 1
            chars += len(_HASHES.split(line, maxsplit=1)[0])
            if count > MAX_LINES or chars > MAX_CHARS:
                raise ImageError(
                    f"{path} and the files that it names have more than {MAX_LINES} lines, or {MAX_CHARS} characters "
                    "without comments and hashes"
                )
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
    need = requirement_of(line)
    if need is None:
        return None
    if need.marker is not None and not need.marker.evaluate():
        return ""
    need.marker = None
    return None if need.url else str(need)


def requirement_of(line: str) -> Requirement | None:
    """The requirement of a line; None for another kind of line, and for one of more than MAX_NEED_CHARS."""
    text = line.partition(" --hash")[0]
    try:
        return None if len(text) > MAX_NEED_CHARS else Requirement(text)
    except (InvalidRequirement, RecursionError):  # parentheses without end
        return None


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


def parse_toml(path: Path, *, max_bytes: int) -> object:
    """What a TOML file says.

    Raises:
        ImageError: it cannot be read, is too large, or is not TOML.
    """
    text = text_of(path, max_bytes=max_bytes)
    # The parser takes time and memory that grow with the square of a key's parts.
    if any(line.count(".") > MAX_DOTS for line in text.splitlines()):
        raise ImageError(f"{path} has a line with more than {MAX_DOTS} dots")
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ImageError(f"{path} cannot be read: {error}") from error
