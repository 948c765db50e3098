"""Where a new request differs from the request of a run."""

import gzip
import hashlib
import io
import tarfile
import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from trainmaster.client.submission.edits import changed_paths
from trainmaster.client.submission.pack import BYTES_MAX, Packed
from trainmaster.orchestrator.core.documents.faults import listed
from trainmaster.orchestrator.core.names import split_object_uri

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients

PATHS_SHOWN = 5
ARCHIVE_PATH = "$.script.archive"
_UNPACKED_MAX = 2 * BYTES_MAX
"""The files, and what tar adds to each of them."""


def differences(
    clients: "Clients", before: Mapping[str, object], after: Mapping[str, object], packed: Packed | None
) -> str:
    """The places where two canonical requests differ, and of packed scripts the files, in a sentence; no values.

    Args:
        clients: of the context that has the archive of `before`.
        before: the run's request.
        after: the new one.
        packed: its script's archive.
    """
    paths = [
        path
        for path in dict.fromkeys([*changed_paths(before, after), *changed_paths(after, before)])
        if path != ARCHIVE_PATH
    ]
    shown = paths[:PATHS_SHOWN] + ([f"{len(paths) - PATHS_SHOWN} more"] if len(paths) > PATHS_SHOWN else [])
    parts = [f"It differs in {listed(shown)}."] if shown else []
    if packed is not None and _archive_of(before) != _archive_of(after):
        files = _changed_files(_archived(clients, _archive_of(before)), packed)
        parts.append(f"The folder of its script differs{files and ': '}{files}.")
        parts.append("To leave a file out of what is sent, name it in a .gitignore.")
    return " ".join(parts)


def _archive_of(request: Mapping[str, object]) -> str:
    script = request.get("script")
    return str(script.get("archive") or "") if isinstance(script, Mapping) else ""


def _archived(clients: "Clients", uri: str) -> bytes | None:
    """The run's archive; None if it was deleted, cannot be read, or was not uploaded by `submit`."""
    from google.api_core.exceptions import GoogleAPICallError

    if not uri.startswith(f"gs://{clients.context.data_bucket}/"):
        return None
    bucket, name = split_object_uri(uri)
    try:
        blob = clients.storage.bucket(bucket).blob(name)
        return bytes(blob.download_as_bytes(end=_UNPACKED_MAX, raw_download=True))
    except GoogleAPICallError:  # it would only have explained the refusal
        return None


def _changed_files(before: bytes | None, packed: Packed) -> str:
    """`new run.log; changed train.py`; empty if the run's archive cannot be read."""
    try:
        old = _hashes(before or b"")
    except (OSError, EOFError, zlib.error, tarfile.TarError):
        return ""
    new = _hashes(packed.content)
    groups = {
        "new": [name for name in new if name not in old],
        "changed": [name for name in new if name in old and new[name] != old[name]],
        "gone": [name for name in old if name not in new],
    }
    return "; ".join(f"{what} {_some(names)}" for what, names in groups.items() if names)


def _some(names: Sequence[str]) -> str:
    left = len(names) - PATHS_SHOWN
    return f"{', '.join(names[:PATHS_SHOWN])}{f' and {left} more' if left > 0 else ''}"


def _hashes(archive: bytes) -> dict[str, tuple[int, str]]:
    """The mode and the hash of each file, by its path.

    Raises:
        OSError, EOFError, zlib.error, tarfile.TarError: it is not an archive, or too large.
    """
    with gzip.GzipFile(fileobj=io.BytesIO(archive)) as zipped:
        content = zipped.read(_UNPACKED_MAX + 1)
    if len(content) > _UNPACKED_MAX:
        raise tarfile.TarError("it is too large")
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as tar:
        files = [(member, tar.extractfile(member)) for member in tar]
        return {
            member.name: (member.mode, hashlib.sha256(file.read()).hexdigest())
            for member, file in files
            if file is not None
        }
