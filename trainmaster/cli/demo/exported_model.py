"""An exported model held against its manifest, loaded, and asked.

TensorFlow is imported only by `Classifier`, in this process, when a prediction is wanted.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MANIFEST_NAME = "export.json"
CHUNK_BYTES = 1 << 20


class ExportDamaged(Exception):
    """The directory does not hold what its manifest says; the message lists every difference."""


@dataclass(frozen=True, kw_only=True)
class Export:
    """A whole export: every file of the manifest is there with its size and hash."""

    directory: Path
    manifest: dict[str, Any]  # schemas/model_export.v1.schema.json

    @property
    def class_names(self) -> list[str]:
        names: list[str] = self.manifest.get("class_names", [])
        return names

    @property
    def size_bytes(self) -> int:
        return sum(int(file["size_bytes"]) for file in self.manifest["files"])


def verified_export(directory: Path) -> Export:
    """The export in `directory`, after its files were hashed and compared with `export.json`.

    Raises:
        ExportDamaged: the manifest is missing or is no JSON, or a file is missing, or differs in size or sha256.
    """
    try:
        manifest = json.loads((directory / MANIFEST_NAME).read_text())
    except (OSError, ValueError) as error:
        raise ExportDamaged(f"No readable {MANIFEST_NAME} in {directory}: {error}") from error
    differences = [problem for file in manifest["files"] if (problem := _difference(directory, file))]
    if differences:
        raise ExportDamaged(f"{directory} is not what its manifest says:\n" + "\n".join(differences))
    return Export(directory=directory, manifest=manifest)


def _difference(directory: Path, file: dict[str, Any]) -> str | None:
    path = directory / file["path"]
    if not path.is_file():
        return f"{file['path']}: missing"
    if path.stat().st_size != file["size_bytes"]:
        return f"{file['path']}: {path.stat().st_size} bytes, the manifest says {file['size_bytes']}"
    found = _sha256(path)
    return (
        None
        if found == file["sha256"]
        else f"{file['path']}: sha256 {found}, the manifest says {file['sha256']}"
    )


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as content:
        while chunk := content.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


class Classifier:
    """The SavedModel of an export, asked through its serving signature."""

    def __init__(self, export: Export) -> None:
        """Load the SavedModel.

        Raises:
            OSError: the directory holds no SavedModel.
        """
        import tensorflow as tf

        self._tf = tf
        self._model = tf.saved_model.load(str(export.directory))
        self._serve = self._model.signatures["serving_default"]
        self._class_names = export.class_names

    def probabilities(self, images: Sequence[bytes]) -> list[list[float]]:
        """Class probabilities, [len(images)][number of classes], of encoded JPEG or PNG images."""
        (name,) = self._serve.structured_input_signature[1]
        answer = self._serve(**{name: self._tf.constant(list(images))})
        return [[float(p) for p in row] for row in answer["probabilities"].numpy()]

    def best_classes(self, images: Sequence[bytes]) -> list[tuple[str, float]]:
        """The most probable class's name and its probability, for each image."""
        rows = self.probabilities(images)
        return [max(zip(self._class_names, row, strict=True), key=lambda pair: pair[1]) for row in rows]
