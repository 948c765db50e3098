"""Where gs:// URIs lie in the file system of a training container.

Vertex AI mounts every bucket that the job may read under /gcs
(https://cloud.google.com/vertex-ai/docs/training/cloud-storage-file-system). The local stack uses
the same place where the machine allows a private mount, and else says in TRAINMASTER_GCS_ROOT
which directory stands for /gcs.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trainer.faults import Unusable

SCHEME = "gs://"
ROOT_VARIABLE = "TRAINMASTER_GCS_ROOT"
DEFAULT_ROOT = "/gcs"


@dataclass(frozen=True, kw_only=True)
class Location:
    """A place with its name, as it was given, and its path here."""

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


def located(uri_or_path: str, environment: Mapping[str, str]) -> Location:
    """The location of a gs:// URI or a local path.

    Raises:
        Unusable: the URI names no bucket, leaves its bucket through `..`, or its bucket is not mounted here.
    """
    if not uri_or_path.startswith(SCHEME):
        return Location(name=uri_or_path, path=Path(uri_or_path).expanduser().absolute())
    root = Path(environment.get(ROOT_VARIABLE) or DEFAULT_ROOT)
    bucket, *parts = uri_or_path.removeprefix(SCHEME).split("/")
    if not bucket or {".", ".."} & {bucket, *parts}:
        raise Unusable(f"{uri_or_path!r} names no place in a bucket; expected gs://BUCKET/PATH without `..`.")
    if not (root / bucket).is_dir():
        raise Unusable(
            f"{uri_or_path!r}: the bucket is not mounted here, there is no directory {root / bucket}. "
            f"Vertex AI mounts the buckets that the job's service account may read under {DEFAULT_ROOT}; "
            f"elsewhere set {ROOT_VARIABLE} to the directory that holds them."
        )
    return Location(name=uri_or_path, path=root.joinpath(bucket, *filter(None, parts)))


@dataclass(frozen=True, kw_only=True)
class Outputs:
    """Where a run leaves model, checkpoints and TensorBoard logs; all replicas get the same places.

    Vertex AI sets the AIP variables when the job has a baseOutputDirectory
    (https://cloud.google.com/vertex-ai/docs/training/code-requirements). Only the chief may write there under
    names that are not its own.
    """

    model: Location
    checkpoints: Location
    logs: Location


def outputs_from(environment: Mapping[str, str], job_dir: str | None) -> Outputs:
    """The AIP directories; where one is not set, a folder of its name under `job_dir`, else under ./output.

    Raises:
        Unusable: a directory lies in a bucket that is not mounted here.
    """
    base = (job_dir or "output").rstrip("/")

    def place(variable: str, folder: str) -> Location:
        return located(environment.get(variable) or f"{base}/{folder}/", environment)

    return Outputs(
        model=place("AIP_MODEL_DIR", "model"),
        checkpoints=place("AIP_CHECKPOINT_DIR", "checkpoints"),
        logs=place("AIP_TENSORBOARD_LOG_DIR", "logs"),
    )


def write_whole(path: Path, text: str) -> None:
    """Whoever reads `path` finds the old text or the new one. Where renaming copies, the copy appears whole."""
    partial = path.with_name(f".{path.name}.partial")
    with partial.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
