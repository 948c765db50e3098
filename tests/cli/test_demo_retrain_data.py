"""The bursts of the retraining demo are what it says of them: same pictures, same test split, other labels."""

import hashlib
from pathlib import Path

import pytest
import tensorflow_datasets as tfds

from trainmaster.cli.demo.retraining.data import BURST_FILES, BURSTS, DATASET, FIRST
from trainmaster.cli.demo.stage import write_dataset

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    root = tmp_path_factory.mktemp("data")
    return [
        write_dataset(root / str(number), DATASET, *options)
        for number, options in enumerate((FIRST, *BURSTS))
    ]


def examples(folder: Path, split: str) -> list[tuple[str, int]]:
    """The hash of each encoded picture, and its label, in the data set's order."""
    read = tfds.builder(DATASET, data_dir=str(folder)).as_dataset(
        split=split,
        decoders={"image": tfds.decode.SkipDecoding()},
        read_config=tfds.ReadConfig(interleave_cycle_length=1),
    )
    return [
        (hashlib.sha256(each["image"]).hexdigest(), int(each["label"])) for each in read.as_numpy_iterator()
    ]


def test_a_burst_is_200_files_with_the_one_that_ends_it(folders: list[Path]) -> None:
    for folder in folders[1:]:
        assert sum(path.is_file() for path in folder.rglob("*")) + 1 == BURST_FILES


def test_every_model_is_measured_on_the_same_pictures(folders: list[Path]) -> None:
    first, clean, noisy = (examples(folder, "test") for folder in folders)
    assert len(first) == 98
    assert first == clean == noisy


def test_the_second_burst_has_the_same_pictures_and_half_of_the_labels_wrong(folders: list[Path]) -> None:
    few, clean, noisy = (examples(folder, "train") for folder in folders)
    assert [picture for picture, _ in clean] == [picture for picture, _ in noisy]
    wrong = sum(right != other for (_, right), (_, other) in zip(clean, noisy, strict=True))
    assert wrong == len(clean) / 2
    assert len(few) == 40
