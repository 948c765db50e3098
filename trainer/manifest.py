"""export.json: what an exported model is made of, so that whoever loads it can see that it is whole.

Its form is schemas/model_export.v1.schema.json.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

MANIFEST_NAME = "export.json"
SCHEMA = "model_export.v1"


@dataclass(frozen=True, kw_only=True)
class FileEntry:
    path: str  # relative, with forward slashes
    size_bytes: int
    sha256: str


def file_entries(directory: Path) -> list[FileEntry]:
    """Every file below `directory` but the manifest, sorted by path."""
    return sorted(_entries(directory), key=lambda entry: entry.path)


def _entries(directory: Path) -> Iterator[FileEntry]:
    for path in directory.rglob("*"):
        name = path.relative_to(directory).as_posix()
        if path.is_file() and name not in {MANIFEST_NAME, _partial(MANIFEST_NAME)}:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            yield FileEntry(path=name, size_bytes=path.stat().st_size, sha256=digest)


def manifest_of(
    directory: Path, *, model_uri: str, created_at: datetime, description: Mapping[str, Any]
) -> dict[str, Any]:
    """The manifest of the files in `directory`; `description` holds the schema's other members.

    `created_at` must be aware of its zone.
    """
    return {
        "schema": SCHEMA,
        "model_uri": model_uri,
        "created_at": created_at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "files": [vars(entry) for entry in file_entries(directory)],
        **description,
    }


def write_manifest(directory: Path, manifest: Mapping[str, Any]) -> Path:
    """Write `manifest` as export.json: whoever sees the file sees all of it."""
    path = directory / MANIFEST_NAME
    partial = directory / _partial(MANIFEST_NAME)
    with partial.open("w") as file:
        file.write(json.dumps(manifest, indent=2, allow_nan=False) + "\n")
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    return path


def remove_manifest(directory: Path) -> None:
    """Take back the promise of an earlier export, before its files change."""
    (directory / MANIFEST_NAME).unlink(missing_ok=True)


def _partial(name: str) -> str:
    return f".{name}.partial"
