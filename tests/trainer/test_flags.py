"""The command line of the trainer, and the values that its flags take."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trainer.devices.choices import Strategy
from trainer.faults import Unusable
from trainer.images.classification import ModelSpec
from trainer.settings.setting import number, one_of, text_of, whole_number
from trainer.settings.settings import TrainingSettings
from trainer.survive import settings_from
from trainer.task import command_from
from trainer.workloads import workload_named, workload_names
from trainer.workloads.horses_or_humans import build


def test_without_flags_the_workloads_defaults_count() -> None:
    command = command_from([])
    assert command.name == "resnet50"
    assert (command.settings.epochs, command.settings.batch_size) == (2, 64)
    own = command.flags
    assert (own["dataset"], own["image_size"], own["weights"]) == ("cassava", (300, 300), "auto")
    assert command_from([TUNED]).flags["dataset"] == "horses_or_humans"


def test_a_program_reads_the_common_settings_over_its_own_defaults(
    capsys: pytest.CaptureFixture[str],
) -> None:
    defaults = TrainingSettings(epochs=5, batch_size=8)
    found = settings_from(["--batch-size=16", "--cache"], prog="mine", defaults=defaults)
    assert found == TrainingSettings(epochs=5, batch_size=16, cache=True)
    with pytest.raises(SystemExit):
        settings_from(["--help"], prog="mine", defaults=defaults)
    assert "passes over the training examples (default: 5)" in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        settings_from(["--dataset=cassava", "--epochs=0"], prog="mine")
    assert ended.value.code == 2
    assert capsys.readouterr().err.splitlines()[1:] == [
        "mine: error: Unknown flag '--dataset'. `mine --help` lists all flags.",
        "mine: error: --epochs=0: expected a whole number of at least 1; found '0'.",
    ]


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("batch_size", "16", 16),
        ("epochs", 2.0, 2),
        ("steps_per_epoch", 1.0, 1),
        ("seed", True, 1),
        ("checkpoint_every_s", "5", 5.0),
        ("cache", "false", False),
        ("cache", 1, True),
        ("strategy", "one_device", Strategy.ONE_DEVICE),
        ("reported_metrics", ["mae", "loss"], ("mae", "loss")),
        ("reported_metrics", "mae,loss", ("mae", "loss")),
        ("job_dir", Path("out"), "out"),
        ("profile", (2, 3), "2,3"),
        ("profile", "10,10", "10,10"),
    ],
)
def test_settings_given_in_python_are_what_the_same_flags_give(name: str, given: Any, value: object) -> None:
    values: dict[str, Any] = {name: given}
    settings = TrainingSettings(**values)
    found = getattr(settings, name)
    assert (found, type(found)) == (value, type(value))
    assert settings.faults() == []


def test_settings_given_in_python_are_checked_like_flags() -> None:
    wrong: dict[str, Any] = {
        "epochs": None, "strategy": "fastest", "batch_size": 2.5, "cache": "maybe", "reported_metrics": [],
        "warmup_steps": 0, "profile": "3,2",
    }  # fmt: skip
    faults = TrainingSettings(**wrong).faults()
    assert [fault.partition(":")[0] for fault in faults] == [
        "--epochs=None", "--strategy=fastest", "--batch_size=2.5", "--cache=maybe", "--reported_metrics=",
        "--warmup_steps=0", "--profile=3,2",
    ]  # fmt: skip
    assert faults[0] == "--epochs=None: expected a whole number of at least 1; found None."


@pytest.mark.parametrize(
    "line",
    [
        "--epochs=3 --learning_rate=1e-3 --reported_metrics=a,b --cache --image_size=48x64",
        "--epochs=9 --epochs 3.0 --learning-rate 0.001 --reported-metrics 'a, b' --cache true --image-size=48X64",
    ],
)
def test_dashes_and_underscores_and_both_forms_of_a_value_are_accepted_and_the_last_counts(line: str) -> None:
    command = command_from(shlex.split(line))
    settings = command.settings
    assert (settings.epochs, settings.reported_metrics, settings.cache) == (3, ("a", "b"), True)
    assert (command.flags["learning_rate"], command.flags["image_size"]) == (0.001, (48, 64))


def test_all_faults_are_reported_together_with_a_repair() -> None:
    with pytest.raises(Unusable) as caught:
        command_from([
            "--epoch=2", "--frobnicate", "--batch_size=0", "--image_size=1x2x3", "--learning_rate=nan",
            "--seed=-1", "--cache=maybe", "--weights=",
        ])  # fmt: skip
    faults = caught.value.faults
    assert "Unknown flag '--epoch'. Did you mean 'epochs'?" in faults[0]
    assert faults[1].startswith("Unknown flag '--frobnicate'. `python")
    invalid = [fault.partition(":")[0] for fault in faults[2:]]
    assert invalid == [
        "--batch_size=0", "--cache=maybe", "--seed=-1", "--image_size=1x2x3",
        "--learning_rate=nan", "--weights=",
    ]  # fmt: skip
    assert "found 'maybe'" in faults[3]


@pytest.mark.parametrize(
    ("argument", "fault"),
    [
        *((asked, "^--help does not take a value") for asked in ("--help=1", "-h=1", "-hx")),
        ("--dataset", "expected a value; found ''"),
        ("--workload=", "--workload=: expected a value"),
        ("cassava", "Unexpected argument 'cassava'"),
        ("--num_units=64", "Unknown flag '--num_units'"),
        ("--reported_metrics=loss,", "expected words with commas between them; found 'loss,'"),
    ],
)
def test_an_argument_that_cannot_be_read_is_refused(argument: str, fault: str) -> None:
    with pytest.raises(Unusable, match=fault):
        command_from([argument])


TUNED = "--workload=horses_or_humans"


def test_a_workload_adds_flags_to_the_common_ones_and_an_integer_may_have_a_decimal_point() -> None:
    own = {"momentum", "num_units"}
    assert not own & command_from([]).flags.keys()
    command = command_from(["--workload=resnet50", TUNED, "--num_units=64", "--num_units=512.0"])
    assert {name: command.flags[name] for name in own} == {"momentum": 0.5, "num_units": 512}
    assert isinstance(command.flags["num_units"], int)
    with pytest.raises(Unusable, match=r"Unknown flag '--momentun'\. Did you mean 'momentum'\?"):
        command_from([TUNED, "--momentun=0.5"])


def test_flags_of_any_workload_are_known_when_the_workload_is_not() -> None:
    with pytest.raises(Unusable) as caught:
        command_from(["--workload=horses_or_human", "--num_units=64", "--epochs=0"])
    assert [fault[:17] for fault in caught.value.faults] == ["Unknown workload ", "--epochs=0: expec"]
    assert "Did you mean 'horses_or_humans'?" in caught.value.faults[0]


def test_help_shows_the_flags_of_the_chosen_workload(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command_from([TUNED, "--help"])
    shown = capsys.readouterr().out
    assert "--num_units" in shown
    assert "train[:80%]" in shown, "a percent sign is not a format"
    with pytest.raises(SystemExit):
        command_from(["--help"])
    assert "--num_units" not in capsys.readouterr().out


def test_the_workload_to_tune_refuses_other_classes_and_small_images() -> None:
    spec = ModelSpec(image_size=(32, 16), classes=5, learning_rate=0.1)
    with pytest.raises(Unusable) as caught:
        build(spec)
    classes, size = caught.value.faults
    assert classes.startswith("--dataset: the data set has 5 classes")
    assert size == "--image_size=32x16: --workload=horses_or_humans needs at least 22 pixels a side."


@pytest.mark.parametrize(
    ("reads", "text", "expected"),
    [
        *((whole_number(1, 512), text, "a whole number from 1 to 512") for text in ("0", "64.5", "inf")),
        (whole_number(), "", "a whole number"),
        *((number(minimum=0), text, "a number of at least 0") for text in ("-0.1", "nan")),
        *((number(maximum=1), text, "a number of at most 1") for text in ("1.1", "much")),
        (one_of("relu", "tanh"), "Relu", "one of relu, tanh"),
    ],
)
def test_a_value_out_of_bounds_is_refused_with_what_would_be_taken(
    reads: Callable[[str], object], text: str, expected: str
) -> None:
    with pytest.raises(ValueError, match=f"^{expected}$"):
        reads(text)


@pytest.mark.parametrize("name", workload_names())
def test_the_defaults_of_every_workload_are_values_it_takes(name: str) -> None:
    workload = workload_named(name)
    for parameter in workload.flags.values():
        if parameter.default is not None:
            assert parameter.reads(text_of(parameter.default)) == parameter.default
    assert TrainingSettings(**workload.defaults).faults() == []
