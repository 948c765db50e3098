"""What a model's own manifest says about its files. It is the trainer's word: only the record is evidence."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from trainmaster.client.files.download import difference
from trainmaster.client.files.listing import RemoteFile
from trainmaster.orchestrator.core.completion.model import MANIFEST_NAME
from trainmaster.orchestrator.core.documents.codec import parse_json
from trainmaster.orchestrator.core.sizes import MAX_MANIFEST_BYTES


def false_claims(files: Sequence[RemoteFile], folder: Path) -> Iterator[str]:
    """Where the downloaded manifest contradicts the downloaded files; nothing without a readable manifest."""
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
