"""The files of a model, as a table of a page."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trainmaster.client.errors import ClientRefused, Damaged, NotFound
from trainmaster.client.files.listing import RemoteFile
from trainmaster.client.terminal import size_text

FILES_SHOWN = 200
FileTable = Mapping[str, Any]  # Any: see below
"""The first FILES_SHOWN `files`, how many are `left_out`, and the `size` of all; or the `problem`, why they are unknown."""


def file_table(read_files: Callable[[], Sequence[RemoteFile]]) -> FileTable:
    """The files that are read. A list that is refused, damaged or gone is a problem, not an error."""
    try:
        files = read_files()
    except (Damaged, NotFound, ClientRefused) as unknown:
        return {"problem": str(unknown)}
    left_out, size = max(0, len(files) - FILES_SHOWN), size_text(sum(file.size_bytes for file in files))
    return {"problem": "", "files": files[:FILES_SHOWN], "left_out": left_out, "size": size}
