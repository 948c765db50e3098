"""The end of a demo: compares the model with its manifest, and classifies pictures that it was not trained on.

Only `best_classes` imports TensorFlow, in this process.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from trainmaster.cli.demo.stage import Scene
from trainmaster.cli.watch.live import doing
from trainmaster.orchestrator.core.sizes import MAX_MANIFEST_BYTES, in_bytes

MANIFEST_NAME = "export.json"
UNSEEN_IMAGES = 50


class ExportDamaged(Exception):
    """The directory does not hold what its manifest says; the message lists every difference."""


@dataclass(frozen=True, kw_only=True)
class Export:
    """A whole export: every file of the manifest is there with its size and hash."""

    directory: Path
    manifest: dict[str, Any]  # schemas/model_export.v1.schema.json

    @property
    def size_bytes(self) -> int:
        return sum(int(file["size_bytes"]) for file in self.manifest["files"])


def verified_export(directory: Path) -> Export:
    """The export in `directory`, after its files were hashed and compared with `export.json`.

    Raises:
        ExportDamaged: the manifest is missing or is not JSON, or a file is missing, or differs in size or sha256.
    """
    try:
        manifest = json.loads(_bounded(directory / MANIFEST_NAME))
    except (OSError, ValueError) as error:
        raise ExportDamaged(f"No readable {MANIFEST_NAME} in {directory}: {error}") from error
    differences = [problem for file in manifest["files"] if (problem := _difference(directory, file))]
    if differences:
        raise ExportDamaged(f"{directory} does not match its manifest:\n" + "\n".join(differences))
    return Export(directory=directory, manifest=manifest)


def _bounded(manifest: Path) -> bytes:
    """The file's content.

    Raises:
        ValueError: it has more than MAX_MANIFEST_BYTES.
    """
    with manifest.open("rb") as file:
        content = file.read(MAX_MANIFEST_BYTES + 1)
    if len(content) > MAX_MANIFEST_BYTES:
        raise ValueError(f"it has more than {MAX_MANIFEST_BYTES} bytes")
    return content


def _difference(directory: Path, file: dict[str, Any]) -> str | None:
    path = directory / file["path"]
    if not path.is_file():
        return f"{file['path']}: missing"
    if path.stat().st_size != file["size_bytes"]:
        return f"{file['path']}: {in_bytes(path.stat().st_size)}, the manifest says {file['size_bytes']}"
    with path.open("rb") as content:
        found = hashlib.file_digest(content, "sha256").hexdigest()
    return None if found == file["sha256"] else f"{file['path']}: sha256 {found}, not {file['sha256']}"


def model_facts(console: Console, model_uri: str, scene: Scene) -> dict[str, str]:
    """What comparing the model's files with its manifest, and classifying pictures with it, showed.

    Raises:
        ExportDamaged: the files are not what the manifest says.
    """
    with doing(console, "Comparing the model's files with export.json"):
        export = verified_export(local_path(model_uri, scene.state))
    # TensorFlow then loads Keras, which is not needed here, only when it is used: a third of the start.
    os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
    with _errors_to(scene.state / "prediction.log"):
        with doing(console, "Loading TensorFlow"):
            images = unseen_images(
                export.manifest["dataset"]["name"], local_path(scene.data_dir, scene.state)
            )
        with doing(console, "Classifying images that the model was not trained on"):
            answers = best_classes(export, [encoded for encoded, _ in images])
    right = sum(label == name for (_, label), (name, _) in zip(images, answers, strict=True))
    size = f"{len(export.manifest['files'])} files, {export.size_bytes / 1e6:.1f} MB"
    return {
        "Model": model_uri,
        "Folder": str(export.directory),
        "Files": f"{size}: every size and sha256 matches export.json",
        "Predictions": f"{right} of {len(images)} test images classified correctly",
    }


def local_path(uri: str, state: Path) -> Path:
    """The folder on this machine that stands for `uri`: the local stack keeps objects as plain files."""
    if not uri.startswith("gs://"):
        return Path(uri)
    return state / "storage" / "buckets" / uri.removeprefix("gs://")


@contextmanager
def _errors_to(log: Path) -> Iterator[None]:
    """Standard error of this process, native code included, goes to `log`: TensorFlow greets there at import."""
    kept = os.dup(2)
    with log.open("ab") as target:
        os.dup2(target.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def unseen_images(dataset: str, data_dir: Path) -> list[tuple[bytes, str]]:
    """The first encoded pictures of the test split with their class names, at most UNSEEN_IMAGES."""
    import tensorflow_datasets as tfds

    builder = tfds.builder(dataset, data_dir=str(data_dir))
    name_of = builder.info.features["label"].int2str
    split = builder.as_dataset(
        split=f"test[:{UNSEEN_IMAGES}]", decoders={"image": tfds.decode.SkipDecoding()}
    )
    return [(example["image"], name_of(example["label"])) for example in split.as_numpy_iterator()]


def best_classes(export: Export, images: Sequence[bytes]) -> list[tuple[str, float]]:
    """The most probable class's name and its probability, by the serving signature, of each JPEG or PNG image.

    Raises:
        OSError: the directory holds no SavedModel.
    """
    import tensorflow as tf

    model = tf.saved_model.load(str(export.directory))
    serve = model.signatures["serving_default"]
    (name,) = serve.structured_input_signature[1]
    rows = serve(**{name: tf.constant(list(images))})["probabilities"].numpy()
    names = export.manifest["class_names"]
    return [(names[row.argmax()], float(row.max())) for row in rows]
