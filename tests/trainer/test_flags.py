"""The command line of the trainer."""

import pytest

from trainer.faults import Unusable
from trainer.flags import FLAGS, Flags, flags_from


def test_without_flags_everything_is_left_to_the_workload() -> None:
    flags = flags_from([])
    assert flags.workload == "resnet50"
    assert flags.weights == "auto"
    assert (flags.dataset, flags.epochs, flags.batch_size, flags.image_size) == (None, None, None, None)


def test_every_field_has_a_flag() -> None:
    assert list(FLAGS) == list(Flags.__dataclass_fields__)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--epochs=3", "--learning_rate=1e-3", "--job_dir=gs://b/o", "--cache"],
        ["--epochs", "3", "--learning-rate", "0.001", "--job-dir", "gs://b/o", "--cache", "true"],
        ["--epochs=9", "--epochs=3.0", "--learning_rate=0.001", "--job-dir=gs://b/o", "--cache=yes"],
    ],
)
def test_both_spellings_and_both_ways_to_give_a_value_are_taken(arguments: list[str]) -> None:
    flags = flags_from(arguments)
    assert (flags.epochs, flags.learning_rate, flags.job_dir, flags.cache) == (3, 0.001, "gs://b/o", True)


@pytest.mark.parametrize(("text", "size"), [("64", (64, 64)), ("48x64", (48, 64)), ("48X64", (48, 64))])
def test_an_image_size_is_a_side_or_height_by_width(text: str, size: tuple[int, int]) -> None:
    assert flags_from([f"--image_size={text}"]).image_size == size


@pytest.mark.parametrize(("text", "momentum"), [("auto", None), ("0.9", 0.9)])
def test_the_momentum_of_batch_normalization_is_a_number_or_found(text: str, momentum: float | None) -> None:
    assert flags_from([f"--batch_norm_momentum={text}"]).batch_norm_momentum == momentum


def test_every_fault_is_told_at_once_with_the_likely_repair() -> None:
    with pytest.raises(Unusable) as caught:
        flags_from([
            "--epoch=2", "--frobnicate", "--batch_size=0", "--image_size=1x2x3", "--learning_rate=nan",
            "--batch_norm_momentum=1", "--seed=-1", "--cache=maybe", "--weights=", "--download",
        ])  # fmt: skip
    faults = caught.value.faults
    assert "Unknown flag '--epoch'. Did you mean 'epochs'?" in faults[0]
    assert faults[1].startswith("Unknown flag '--frobnicate'. `python")
    told = [fault.partition(":")[0] for fault in faults[2:]]
    assert told == [
        "--batch_size=0", "--image_size=1x2x3", "--learning_rate=nan", "--weights=", "--batch_norm_momentum=1",
        "--cache=maybe", "--seed=-1",
    ]  # fmt: skip
    assert "found 'maybe'" in faults[-2]


def test_a_flag_without_its_value_and_a_word_without_a_flag_are_told() -> None:
    with pytest.raises(Unusable, match="expected a value; found ''"):
        flags_from(["--dataset"])
    with pytest.raises(Unusable, match="'cassava' stands alone"):
        flags_from(["cassava"])
