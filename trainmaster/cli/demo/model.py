"""The end of a demo: the model held against its manifest, and what it says of pictures it never learned from."""

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from trainmaster.cli.demo.exported_model import Classifier, Export, verified_export
from trainmaster.cli.demo.stage import Scene

SAMPLES_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class LabelledImage:
    encoded: bytes  # JPEG or PNG
    label: str


@dataclass(frozen=True, kw_only=True)
class Answers:
    """How the loaded model did on pictures of the test split, and how well the trainer had found it to do."""

    right: int
    asked: int
    measured: float | None  # the manifest's accuracy on the evaluation split, from 0 to 1

    @property
    def as_measured(self) -> bool:
        """Whether both agree within three standard errors of so few pictures."""
        if self.measured is None or not self.asked:
            return True
        return abs(self.right / self.asked - self.measured) <= 3 * 0.5 / math.sqrt(self.asked)


def show_model(console: Console, model_uri: str, scene: Scene) -> Answers:
    """What the model answers, after its files were compared with its manifest; both are shown.

    Raises:
        ExportDamaged: the files are not what the manifest says.
    """
    export = verified_export(local_path(model_uri, scene.state))
    console.rule("The model", align="left")
    console.print(Text(f"{model_uri}\n{export.directory}", style="bold cyan"), soft_wrap=True)
    files = len(export.manifest["files"])
    console.print(
        f"{files} files, {export.size_bytes / 1e6:.1f} MB: every size and sha256 is as export.json says."
    )
    return _predict(console, export, local_path(scene.data_dir, scene.state), scene.state / "prediction.log")


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


def _predict(console: Console, export: Export, data_dir: Path, log: Path) -> Answers:
    with _errors_to(log):
        images = list(unseen_images(export.manifest["dataset"]["name"], data_dir))
        answers = Classifier(export).best_classes([image.encoded for image in images])
    right = sum(image.label == name for image, (name, _) in zip(images, answers, strict=True))
    table = Table(title="The exported model, loaded and asked", title_justify="left", box=None)
    for heading in ("picture", "is", "the model says", "sure"):
        table.add_column(heading)
    shown = list(zip(images, answers, strict=True))[:SAMPLES_SHOWN]
    for number, (image, (name, probability)) in enumerate(shown, start=1):
        style = "green" if image.label == name else "yellow"
        table.add_row(f"test {number}", image.label, Text(name, style=style), f"{probability:.0%}")
    console.print(table)
    console.print(f"{right} of {len(images)} pictures of the test split are named rightly.")
    measured = export.manifest.get("metrics", {}).get("val_accuracy")
    return Answers(right=right, asked=len(images), measured=measured)


def unseen_images(dataset: str, data_dir: Path, most: int = 50) -> Iterator[LabelledImage]:
    """Encoded pictures of the test split with their class names, at most `most`, in the data set's order."""
    import tensorflow_datasets as tfds

    builder = tfds.builder(dataset, data_dir=str(data_dir))
    name_of = builder.info.features["label"].int2str
    split = builder.as_dataset(split=f"test[:{most}]", decoders={"image": tfds.decode.SkipDecoding()})
    for example in split.as_numpy_iterator():
        yield LabelledImage(encoded=example["image"], label=name_of(example["label"]))
