"""The paths of gs:// URIs in the file system of a training container.

Vertex AI mounts every bucket that the job may read under /gcs, and so does the local stack where it can; elsewhere
TRAINMASTER_GCS_ROOT names the directory that replaces /gcs.
Source: https://cloud.google.com/vertex-ai/docs/training/cloud-storage-file-system
"""

import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trainer.faults import Unusable, collect_faults

SCHEME = "gs://"
ROOT_VARIABLE = "TRAINMASTER_GCS_ROOT"
DEFAULT_ROOT = "/gcs"
CONTINUE_VARIABLE = "TRAINMASTER_CONTINUE_FROM"
VARIABLES = {"model": "AIP_MODEL_DIR", "checkpoints": "AIP_CHECKPOINT_DIR", "logs": "AIP_TENSORBOARD_LOG_DIR"}


@dataclass(frozen=True, kw_only=True)
class OutputLocation:
    """A directory or file: its name as given, and its path on this machine."""

    name: str
    path: Path

    @property
    def is_shared(self) -> bool:
        """Whether other machines see the same files."""
        return self.name.startswith(SCHEME)

    @property
    def directory_uri(self) -> str:
        """gs:// or file://, with a trailing slash."""
        return (self.name if self.is_shared else self.path.as_uri()).rstrip("/") + "/"


def location_of(uri_or_path: str, environment: Mapping[str, str]) -> OutputLocation:
    """The location of a gs:// URI or a local path.

    Raises:
        Unusable: the URI names no bucket, leaves its bucket through `..`, or its bucket is not mounted here.
    """
    if not uri_or_path.startswith(SCHEME):
        return OutputLocation(name=uri_or_path, path=Path(uri_or_path).expanduser().absolute())
    root = Path(environment.get(ROOT_VARIABLE) or DEFAULT_ROOT)
    bucket, *parts = uri_or_path.removeprefix(SCHEME).split("/")
    if not bucket or {".", ".."} & {bucket, *parts}:
        raise Unusable(f"Invalid URI {uri_or_path!r}; expected gs://BUCKET/PATH without `.` or `..`.")
    if not (root / bucket).is_dir():
        raise Unusable(
            f"{uri_or_path!r}: the bucket is not mounted on this machine: the directory {root / bucket} does not exist. "
            f"Vertex AI mounts the buckets that the job's service account may read under {DEFAULT_ROOT}; "
            f"elsewhere, set {ROOT_VARIABLE} to the directory that contains them."
        )
    return OutputLocation(name=uri_or_path, path=root.joinpath(bucket, *filter(None, parts)))


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """Where a run writes; the same for all replicas, of which only the chief writes names that are not its own.

    Vertex AI sets the AIP variables when the job has a baseOutputDirectory:
    https://cloud.google.com/vertex-ai/docs/training/code-requirements
    """

    model: OutputLocation
    checkpoints: OutputLocation
    logs: OutputLocation


def outputs_from(environment: Mapping[str, str], job_dir: str | None) -> Outputs:
    """The AIP directories; by default folders of `job_dir`, or of ./output without it.

    Raises:
        Unusable: a directory lies in a bucket that is not mounted here, or a file is in its place.
    """
    base = (job_dir or "output").rstrip("/")
    places, faults = dict[str, OutputLocation](), list[str]()
    for folder, variable in VARIABLES.items():
        with collect_faults(faults):
            place = location_of(environment.get(variable) or f"{base}/{folder}/", environment)
            # What would fail only at the first checkpoint or at the export is refused at the start.
            there = next(path for path in (place.path, *place.path.parents) if os.path.lexists(path))
            if not there.is_dir():
                faults.append(
                    f"{variable}: {place.name!r} cannot be a directory, because {there} is not one. Remove it, or set "
                    f"{variable} or --job_dir to another directory."
                )
            places[folder] = place
    if faults:
        raise Unusable(*faults)
    return Outputs(**places)


def copy_earlier_checkpoints(outputs: Outputs, environment: Mapping[str, str], *, is_chief: bool) -> None:
    """Begin with the checkpoints that CONTINUE_VARIABLE names, copied once; other replicas wait for the chief.

    Raises:
        Unusable: their bucket is not mounted here.
    """
    uri, target = environment.get(CONTINUE_VARIABLE), outputs.checkpoints.path
    done = target.parent / ".continued"
    while uri and not done.exists():
        if is_chief:
            shutil.copytree(location_of(uri, environment).path, target, dirs_exist_ok=True)
            done.touch()
        time.sleep(0 if is_chief else 1)


def write_whole(path: Path, text: str) -> None:
    """Write `path` atomically: readers see the old text or the new one, also where renaming copies the file."""
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
