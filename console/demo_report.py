"""The end of the demo: the record, the model held against its manifest, and what it says of pictures it never saw."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from console.exported_model import Classifier, Export, ExportDamaged, verified_export
from console.way import Sighting

SAMPLES_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class LabelledImage:
    encoded: bytes  # JPEG
    label: str


def report(console: Console, seen: Sighting, data_dir: str, state: Path) -> int:
    """0 if the record says succeeded, the export is whole and the model answers; 1 with the reason otherwise."""
    record = dict(seen.record or {})
    console.rule("The run record", align="left")
    console.print_json(data=record)
    if record.get("state") != "succeeded":
        console.print(Text(f"The run ended {record.get('state')}: {record.get('error')}", style="red"))
        return 1
    model_uri = record["model"]["uri"]
    try:
        export = verified_export(local_path(model_uri, state))
    except ExportDamaged as damage:
        console.print(Text(str(damage), style="red"))
        return 1
    console.rule("The model", align="left")
    console.print(Text(f"{model_uri}\n{export.directory}", style="bold cyan"), soft_wrap=True)
    files = len(export.manifest["files"])
    console.print(
        f"{files} files, {export.size_bytes / 1e6:.1f} MB: every size and sha256 is as export.json says."
    )
    _predict(console, export, local_path(data_dir, state), state / "prediction.log")
    return 0


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


def _predict(console: Console, export: Export, data_dir: Path, log: Path) -> None:
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


def unseen_images(dataset: str, data_dir: Path, most: int = 50) -> Iterator[LabelledImage]:
    """Encoded pictures of the test split with their class names, at most `most`, in the data set's order."""
    import tensorflow_datasets as tfds

    builder = tfds.builder(dataset, data_dir=str(data_dir))
    name_of = builder.info.features["label"].int2str
    split = builder.as_dataset(split=f"test[:{most}]", decoders={"image": tfds.decode.SkipDecoding()})
    for example in split.as_numpy_iterator():
        yield LabelledImage(encoded=example["image"], label=name_of(example["label"]))
