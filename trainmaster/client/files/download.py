"""Downloads objects into a folder: each is verified, then appears under its name, or not at all."""

import base64
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from trainmaster.client.clients import Clients
from trainmaster.client.errors import ClientRefused, Damaged
from trainmaster.client.files.downloaded import add_downloaded
from trainmaster.client.files.listing import RemoteFile
from trainmaster.orchestrator.core.completion.model import MANIFEST_NAME
from trainmaster.orchestrator.core.documents.codec import parse_json
from trainmaster.orchestrator.core.names import split_object_uri
from trainmaster.orchestrator.core.sizes import MAX_MANIFEST_BYTES, in_bytes

DOWNLOADERS = 8
CHUNK_BYTES = 8 * 1024 * 1024
"""How much of one file is in memory."""
FAULTS_SHOWN = 10


def download(
    clients: Clients,
    files: Sequence[RemoteFile],
    folder: Path,
    *,
    overwrite: bool = False,
) -> None:
    """Put the files into `folder`, which is made. A file that is there already, whole and equal, is kept.

    So an interrupted download can be repeated. A file is written to a temporary folder in `folder`, and moved once its
    size and checksums are what `files` says; the temporary folder is removed in the end. The list of the files stays in
    the folder, for `submit` not to pack them.

    Args:
        clients: of the context that has the objects.
        files: what is downloaded, and what must be found.
        folder: on this machine.
        overwrite: replace files that differ.

    Raises:
        ClientRefused: a path leads out of the folder or to a file that may not be overwritten; nothing was downloaded.
        Damaged: an object is not the one that the record lists, or not any more.
        OSError: a file cannot be written.
    """
    targets = _targets(files, folder)
    there = [(file, path) for file, path in targets if path.exists() or path.is_symlink()]
    whole = {path for file, path in there if path.is_file() and difference(file, path) is None}
    if not overwrite:
        _refuse(f"{path} exists and differs" for _, path in there if path not in whole)
    folder.mkdir(parents=True, exist_ok=True)
    add_downloaded(folder, (file.path for file in files))
    missing = [(file, path) for file, path in targets if path not in whole]
    with (
        TemporaryDirectory(dir=folder, prefix=".download-") as parts,
        ThreadPoolExecutor(DOWNLOADERS) as pool,
    ):
        waiting = [
            pool.submit(_place, clients, file, path, Path(parts, str(number)), overwrite=overwrite)
            for number, (file, path) in enumerate(missing)
        ]
        try:
            for placed in waiting:
                placed.result()
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _targets(files: Iterable[RemoteFile], folder: Path) -> list[tuple[RemoteFile, Path]]:
    """Where each file belongs.

    Raises:
        ClientRefused: an object's name would lead out of the folder, also by a symbolic link in it, or cannot be a path.
    """
    inside = folder.resolve()
    targets = [(file, folder / file.path) for file in files]
    _refuse(
        f"{file.uri!r} cannot be a path in the folder"
        for file, path in targets
        if not _is_path(file.path) or not path.parent.resolve().is_relative_to(inside)
    )
    return targets


def _is_path(text: str) -> bool:
    parts = text.split("/")
    return not {"", ".", ".."} & set(parts) and not {"\0", "\\"} & set(text) and not Path(text).is_absolute()


def _refuse(faults: Iterable[str]) -> None:
    found = list(faults)
    if not found:
        return
    more = [f"and {len(found) - FAULTS_SHOWN} more"] if len(found) > FAULTS_SHOWN else []
    repair = "Nothing was downloaded. Choose another folder, or replace such files with --force."
    raise ClientRefused("\n".join([*found[:FAULTS_SHOWN], *more, repair]))


def _place(clients: Clients, file: RemoteFile, path: Path, part: Path, *, overwrite: bool) -> None:
    _fetch(clients, file, part)
    problem = difference(file, part)
    if problem is not None:
        raise Damaged(f"{file.uri} is not what the record lists: {problem}.")
    path.parent.mkdir(parents=True, exist_ok=True)
    if not overwrite and (path.exists() or path.is_symlink()):
        raise ClientRefused(f"{path} was written meanwhile, and is kept. Replace it with --force.")
    part.replace(path)


def _fetch(clients: Clients, file: RemoteFile, part: Path) -> None:
    from google.api_core.exceptions import NotFound as ObjectNotFound

    bucket, name = split_object_uri(file.uri)
    blob: Any = clients.storage.bucket(bucket).blob(name, generation=file.generation, chunk_size=CHUNK_BYTES)
    try:
        with part.open("xb") as content:
            blob.download_to_file(content)
    except ObjectNotFound as missing:
        listed = "" if file.generation is None else f" as the record lists it (generation {file.generation})"
        raise Damaged(f"{file.uri} no longer exists{listed}: it was overwritten or deleted.") from missing


def difference(file: RemoteFile, path: Path) -> str | None:
    """How the file on this machine differs from what is listed; None if it does not."""
    size = path.stat().st_size
    if size != file.size_bytes:
        return f"{in_bytes(size)}, not {file.size_bytes}"
    if file.crc32c is not None and (found := _crc32c(path)) != file.crc32c:
        return f"crc32c {found}, not {file.crc32c}"
    if file.sha256 is not None and (found := _sha256(path)) != file.sha256:
        return f"sha256 {found}, not {file.sha256}"
    return None


def _crc32c(path: Path) -> str:
    import google_crc32c

    library: Any = google_crc32c  # untyped
    checksum = library.Checksum()
    with path.open("rb") as content:
        while chunk := content.read(CHUNK_BYTES):
            checksum.update(chunk)
    return base64.b64encode(checksum.digest()).decode("ascii")


def _sha256(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def false_claims(files: Sequence[RemoteFile], folder: Path) -> Iterator[str]:
    """Where the downloaded manifest contradicts the downloaded files; nothing without a readable manifest.

    The manifest is the trainer's word: only the record is evidence.
    """
    named = {file.path for file in files}
    manifest = _manifest(folder / MANIFEST_NAME) if MANIFEST_NAME in named else None
    claims = manifest.get("files") if isinstance(manifest, dict) else None
    for claim in claims if isinstance(claims, list) else ():
        path, sha256 = (claim.get("path"), claim.get("sha256")) if isinstance(claim, dict) else (None, None)
        if path in named and isinstance(path, str) and isinstance(sha256, str):
            size = (folder / path).stat().st_size
            found = difference(RemoteFile(uri="", path=path, size_bytes=size, sha256=sha256), folder / path)
            if found is not None:
                yield f"{path}: {found}, as {MANIFEST_NAME} says"


def _manifest(path: Path) -> object:
    if path.stat().st_size > MAX_MANIFEST_BYTES:
        return None
    try:
        manifest: object = parse_json(path.read_bytes())
    except ValueError:
        return None
    return manifest
