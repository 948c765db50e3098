"""The files of a model, as a table of a page."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from trainmaster.client.errors import ClientRefused, Damaged, NotFound
from trainmaster.client.files.listing import RemoteFile
from trainmaster.client.terminal import size_text

FILES_SHOWN = 200


@dataclass(frozen=True, kw_only=True)
class FileTable:
    """The first FILES_SHOWN files and the size of all, or why they are unknown."""

    files: Sequence[RemoteFile] = ()
    left_out: int = 0
    size: str = ""
    problem: str = ""


def file_table(read_files: Callable[[], Sequence[RemoteFile]]) -> FileTable:
    """The files that are read. A list that is refused, damaged or gone is a problem, not an error."""
    try:
        files = read_files()
    except (Damaged, NotFound, ClientRefused) as unknown:
        return FileTable(problem=str(unknown))
    return FileTable(
        files=files[:FILES_SHOWN],
        left_out=max(0, len(files) - FILES_SHOWN),
        size=size_text(sum(file.size_bytes for file in files)),
    )
