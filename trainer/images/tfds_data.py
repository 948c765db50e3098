"""The TFDS data set that a replica trains or evaluates on, prepared on this machine.

Nothing here runs a TensorFlow operation: the strategy must be built before the first one.
"""

import importlib.resources.abc
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow_datasets as tfds

from trainer.data.examples import Examples
from trainer.faults import Unusable, suggestion_for
from trainer.images.weights import why_unreachable
from trainer.storage import OutputLocation, location_of
from trainer.workload import TrainingRun

EVALUATION_SPLITS = ("validation", "test")  # the first one that the data set has
NO_SPLIT = "none"
SHARED_WAIT_S = 3600.0
POLL_S = 2.0


def split_examples(builder: Any, split: str) -> Examples:
    """A split of a prepared data set as encoded images and labels, in the order of the files."""
    image, _ = image_and_label(builder.info)

    def load() -> Any:
        return builder.as_dataset(
            split=split,
            as_supervised=True,
            decoders={image: tfds.decode.SkipDecoding()},
            read_config=tfds.ReadConfig(try_autocache=False),
        )

    split_info = builder.info.splits[split]
    size_bytes = sum(
        Path(part.filename).stat().st_size * part.take // max(1, part.examples_in_shard)
        for part in split_info.file_instructions
    )
    return Examples(load, count=int(split_info.num_examples), size_bytes=size_bytes)


def prepared_builder(run: TrainingRun) -> Any:
    """TFDS's builder of the data set that the flags name. Prepares it if necessary.

    Of replicas that share a data directory, only the chief prepares; the others wait for it.

    Raises:
        Unusable: TFDS has no such data set, it is neither prepared nor can it be, it does not consist of
            labelled 8-bit images.
    """
    if not os.isatty(2):  # TFDS's progress bars fill a job's log with control characters
        tfds.disable_progress_bar()
    name, environment = run.flags["dataset"], run.environment
    home = location_of(
        run.flags["data_dir"] or environment.get("TFDS_DATA_DIR") or str(tfds.core.constants.DATA_DIR),
        environment,
    )
    builder = _builder_of(name, home)
    if not _is_prepared(builder):
        prepare = _prepare_data_set if run.cluster.is_chief or not home.is_shared else _await_prepared
        prepare(builder, name, home)
        builder = _builder_of(name, home)
    image_and_label(builder.info)
    return builder


def _builder_of(name: str, home: OutputLocation) -> Any:
    try:
        return tfds.builder(name, data_dir=home.path)
    except tfds.core.registered.DatasetNotFoundError as error:
        bare = name.partition("/")[0].partition(":")[0]
        suggestion = suggestion_for(bare, tfds.list_builders(with_community_datasets=False))
        raise Unusable(
            f"--dataset={name}: unknown data set {bare!r}; neither TFDS {tfds.__version__} nor {home.name!r} has it."
            f"{suggestion}"
        ) from error
    except (AssertionError, ValueError) as error:  # how TFDS refuses a version or configuration
        raise Unusable(f"--dataset={name}: {str(error).splitlines()[0]}") from error


def _is_prepared(builder: Any) -> bool:
    return (Path(builder.data_dir) / "dataset_info.json").is_file()


def _prepare_data_set(builder: Any, name: str, home: OutputLocation) -> None:
    """Have TFDS download and write the data set.

    Safe for several processes of one machine at once: TFDS writes into a temporary folder and renames it.
    """
    # TFDS 4.9.10 imports the backport, which it requires for Python 3.8 only; the standard module works too.
    sys.modules.setdefault("importlib_resources", importlib.resources)
    for url in sorted(builder.url_infos)[:1]:  # TFDS itself would retry for minutes
        if (unreachable := why_unreachable(url)) is not None:
            raise _missing_data_set(name, home, f"its source is unreachable ({url}: {unreachable})")
    try:
        builder.download_and_prepare(download_config=tfds.download.DownloadConfig(num_shards=None))
    except Exception as error:  # TFDS passes on the errors of every download library
        if not _is_prepared(builder):
            reason = f"{type(error).__name__}: {str(error).strip()}".splitlines()[0]
            raise _missing_data_set(name, home, f"preparing it failed ({reason})") from error


def _await_prepared(builder: Any, name: str, home: OutputLocation) -> None:
    deadline = time.monotonic() + SHARED_WAIT_S
    while not _is_prepared(builder):
        if time.monotonic() > deadline:
            raise _missing_data_set(name, home, f"the chief did not prepare it within {SHARED_WAIT_S:g} s")
        time.sleep(POLL_S)


def _missing_data_set(name: str, home: OutputLocation, why: str) -> Unusable:
    return Unusable(
        f"--dataset={name} is not in {home.name!r}, and {why}. "
        f"Set --data_dir or TFDS_DATA_DIR to a directory that has it, or prepare it on a machine that can reach its "
        f"source: tfds build {name} --data_dir={home.path}"
    )


def chosen_splits(info: Any, train: str | None, evaluation: str | None) -> tuple[str, str | None]:
    """The splits to train and to evaluate on, None for no evaluation, where flags ask for these.

    Raises:
        Unusable: the data set lacks one, or it is empty.
    """
    sizes = {name: split.num_examples for name, split in info.splits.items()}
    evaluation = evaluation or next((split for split in EVALUATION_SPLITS if sizes.get(split)), NO_SPLIT)
    train = _checked_split(info, train or "train", "--train_split")
    return train, None if evaluation == NO_SPLIT else _checked_split(info, evaluation, "--evaluation_split")


def _checked_split(info: Any, split: str, flag: str) -> str:
    try:
        count = int(info.splits[split].num_examples)
    except (KeyError, ValueError, AssertionError) as error:
        known = ", ".join(info.splits)
        raise Unusable(
            f"{flag}={split}: {info.full_name} has no such split; it has {known}.{suggestion_for(split, info.splits)}"
        ) from error
    if not count:
        raise Unusable(f"{flag}={split}: the split has no examples. Choose another split.")
    return split


def image_and_label(info: Any) -> tuple[str, str]:
    """The names of the features with the 8-bit image and its class.

    Raises:
        Unusable: the data set has no such features.
    """
    features = dict(info.features.items())
    match keys := info.supervised_keys:
        case (str(image), str(label)):
            pixels, names = features.get(image), features.get(label)
            is_image = isinstance(pixels, tfds.features.Image) and np.dtype(pixels.np_dtype) == np.uint8
            if is_image and isinstance(names, tfds.features.ClassLabel):
                return image, label
    raise Unusable(
        f"--dataset={info.full_name} is not a data set for classifying 8-bit images: its supervised keys are {keys!r}, "
        f"its features {sorted(features)}. Choose a data set whose supervised keys are an Image and a ClassLabel."
    )
