"""export.json: the files of an exported model, so that a loader can verify that it is complete.

Its schema is schemas/model_export.v1.schema.json.
"""

import base64
import hashlib
import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from trainer.storage import write_whole

MANIFEST_NAME = "export.json"
SCHEMA = "model_export.v1"
MANIFEST_BYTES = 4 << 20  # as many as the service reads
_OWN = {MANIFEST_NAME, f".{MANIFEST_NAME}.partial"}  # files of the manifest, not of the model


def file_entries(directory: Path) -> list[dict[str, Any]]:
    """Path, relative with forward slashes, size and hashes of every file below `directory` but the manifest, sorted."""
    paths = {path.relative_to(directory).as_posix(): path for path in directory.rglob("*") if path.is_file()}
    return [_file_entry(name, path) for name, path in sorted(paths.items()) if name not in _OWN]


def _file_entry(name: str, path: Path) -> dict[str, Any]:
    sha256, md5 = hashlib.sha256(), hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            sha256.update(chunk)
            md5.update(chunk)
    return {
        "path": name,
        "size_bytes": path.stat().st_size,
        "sha256": sha256.hexdigest(),
        "md5": base64.b64encode(md5.digest()).decode(),  # as Cloud Storage lists it
    }


def manifest_of(
    directory: Path, *, model_uri: str, created_at: datetime, description: Mapping[str, Any]
) -> dict[str, Any]:
    """The manifest of the files in `directory`; `created_at` is aware, `description` holds the schema's other members."""
    return {
        "schema": SCHEMA,
        "model_uri": model_uri,
        "created_at": created_at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "files": file_entries(directory),
        **description,
    }


def described_metrics(metrics: Mapping[str, float]) -> dict[str, dict[str, Any]]:
    """The manifest's members for `metrics`: those that JSON has no number for, of a training that diverged, by name."""
    finite = {name: value for name, value in metrics.items() if math.isfinite(value)}
    diverged = {name: str(float(value)) for name, value in metrics.items() if name not in finite}
    return {"metrics": finite, **({"not_finite": diverged} if diverged else {})}


def metrics_of(manifest: Mapping[str, Any]) -> dict[str, float]:
    """The metrics that `described_metrics` wrote."""
    diverged = {name: float(value) for name, value in manifest.get("not_finite", {}).items()}
    return {**manifest["metrics"], **diverged}


def job_of(service_variables: Mapping[str, str]) -> dict[str, str] | None:
    """What a manifest says about its job: the job's id, and the trial's in a tuning. None outside of a job.

    A job's arguments cannot change, so its restarts, and nothing else, have the same ids.
    """
    ids = {name: service_variables.get(f"CLOUD_ML_{name.upper()}") for name in ("job_id", "trial_id")}
    return {name: text for name, text in ids.items() if text} if ids["job_id"] else None


def finished_export(directory: Path, job: Mapping[str, str] | None) -> dict[str, Any] | None:
    """The manifest in `directory`, if `job` wrote it and all its files are there in their sizes; else None."""
    if job is None:
        return None
    path = directory / MANIFEST_NAME
    try:
        if path.stat().st_size > MANIFEST_BYTES:
            return None
        manifest: dict[str, Any] = json.loads(path.read_bytes())
        sizes = {entry["path"]: entry["size_bytes"] for entry in manifest["files"]}
        is_whole = all((directory / name).stat().st_size == size for name, size in sizes.items())
        return manifest if is_whole and sizes and manifest["job"] == job else None
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def write_manifest(directory: Path, manifest: Mapping[str, Any]) -> Path:
    """Write `manifest` as export.json, atomically."""
    path = directory / MANIFEST_NAME
    write_whole(path, json.dumps(manifest, indent=2, allow_nan=False) + "\n")
    return path
