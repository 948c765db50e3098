"""The source of a document that is examined: a file, standard input, a pasted text, or options alone."""

import json
import os
import shlex
import stat
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path, PurePath
from typing import Any, BinaryIO

from trainmaster.client.errors import ClientRefused
from trainmaster.client.runs.origin import header_of
from trainmaster.client.submission.pack import notebook_text
from trainmaster.orchestrator.core.documents.document import Document, is_json, parse_document
from trainmaster.orchestrator.core.sizes import MAX_REQUEST_BYTES

STDIN = "-"
NO_FILE = ""
"""The name of a request that has no file: only a script or an image."""
NAME_MAX_CHARS = 200
"""Of a pasted text's file."""


class UnusableFile(ClientRefused):
    """A file cannot be read, or is a policy that no deployment could use; one line for each problem."""


@dataclass(frozen=True, kw_only=True)
class RequestSource:
    """A text, and the name of its file: a path, `-`, or NO_FILE.

    Attributes:
        content: at most one byte more than a request can have.
        folder: where the paths in it begin; None if that is on another machine.
        below: a folder outside which nothing is read for it; None: all that the user can read.
    """

    file: str
    content: bytes = b""
    folder: Path | None = Path()
    below: Path | None = None

    @property
    def is_named(self) -> bool:
        return self.file not in (STDIN, NO_FILE)

    @property
    def read(self) -> Document:
        """The document in the text, unchecked."""
        return parse_document(self.content, as_json=is_json_file(self.file, self.content))

    def text_of(self, document: dict[str, Any]) -> bytes:  # Any: a document that no schema has validated
        """A changed document as the service will read a file of this name; YAML says from which content it was made."""
        import yaml

        text = json_text(document, "the request", 2)
        if self.is_named and is_json_file(self.file, self.content):
            return f"{text}\n".encode()
        head = header_of(self.content) if self.is_named else ""
        return f"{head}{yaml.safe_dump(document, sort_keys=False, allow_unicode=True)}".encode()


def read_source(file: str, stdin: BinaryIO) -> RequestSource:
    """The file with this path, or standard input for `-`.

    Raises:
        UnusableFile: as `read_file`, or the file is a Python script or a notebook.
    """
    if file == STDIN:
        return RequestSource(file=file, content=stdin.read(MAX_REQUEST_BYTES + 1))
    content = read_file(file, MAX_REQUEST_BYTES)
    if file.lower().endswith(".py"):
        submit = shlex.join(["trainmaster", "submit", "--script", file])
        raise UnusableFile(f"{file}: a Python script, not a request. To submit it: {submit}")
    if file.lower().endswith(".ipynb"):
        raise UnusableFile(notebook_text(file))
    return RequestSource(file=file, content=content, folder=Path(file).parent)


def read_source_below(folder: Path, file: str) -> RequestSource:
    """As `read_source`, of a file in the folder or below it; so must be all that is packed for it.

    Raises:
        UnusableFile: as `read_source` and `check_below`.
    """
    check_below(folder, folder / file)
    return replace(read_source(str(folder / file), BytesIO()), file=file, below=folder)


def check_below(folder: Path | None, path: Path) -> None:
    """Raises: UnusableFile: the path is outside the folder, through links too, or no file can have this name."""
    if folder is None:
        return
    try:
        is_below = path.resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):  # a name that is too long, a NUL, a loop of links
        is_below = False
    if not is_below:
        raise UnusableFile(
            f"{str(path)!r:.300} is outside {str(folder)!r}. Only files below that are read here."
        )


def pasted_source(text: str, file: str = "") -> RequestSource:
    """A text of another machine, with the line ends that were typed: a browser's form sends CR LF.

    Raises:
        ClientRefused: the file's name is too long.
    """
    name = PurePath(file.strip().replace("\\", "/")).name
    if len(name) > NAME_MAX_CHARS:
        raise ClientRefused(
            f"The name of a file has at most {NAME_MAX_CHARS} characters here; found {len(name)}. Shorten it."
        )
    content = text.replace("\r\n", "\n").encode("utf-8", "surrogatepass")
    return RequestSource(file=name or STDIN, content=content[: MAX_REQUEST_BYTES + 1], folder=None)


def read_file(name: str, at_most: int) -> bytes:
    """The file's content; of one larger than `at_most` bytes, one byte too much.

    Raises:
        UnusableFile: it is a folder, does not exist, or cannot be read.
    """
    try:
        with open(name, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise UnusableFile(f"{name}: not a regular file; for a pipe, write -")
            return file.read(at_most + 1)
    except IsADirectoryError as error:
        problem = f"{name}: a folder; name the files in it, for example {Path(name) / '*.yaml'}"
        raise UnusableFile(problem) from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise UnusableFile(f"{name or repr(name)}: {getattr(error, 'strerror', None) or error}") from error


def json_text(value: object, what: str, indent: int | None = None) -> str:
    """The value as JSON that has an encoding. Raises: ClientRefused: JSON cannot hold it, such as half a character."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent).encode().decode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ClientRefused(f"{what}: expected what JSON can hold: {error}.") from error


def is_json_file(name: str, content: bytes) -> bool:
    """Whether the service would read a file of this name as JSON, and standard input by its content."""
    return is_json(content) if name == STDIN else name.lower().endswith(".json")
