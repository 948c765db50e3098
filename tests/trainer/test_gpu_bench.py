"""bench/trainer_gpu.py: what it counts, and the programs that it compares."""

import json
from pathlib import Path

import pytest

from bench.trainer_gpu import (
    EPOCHS,
    FIT,
    GUIDE,
    OURS,
    Speed,
    Step,
    Variant,
    asked_by,
    command,
    counted,
    row,
    steps_of,
    variants,
)
from trainer.task import command_from


def test_images_are_counted_between_two_steps_of_the_last_epoch() -> None:
    lines = [
        "TensorFlow says something",
        '{"event": "train_started", "epoch": 2}',
        *(f'{{"event": "train_progress", "epoch": {epoch}, "step": {step}}}' for epoch in (1, 2) for step in (1, 9)),
        '"train_progress"',
    ]  # fmt: skip
    first, last = counted(list(steps_of(lines)))
    assert [(each.epoch, each.step) for each in (first, last)] == [(EPOCHS, 1), (EPOCHS, 9)]
    assert first.at <= last.at


def test_an_epoch_of_one_step_measures_nothing() -> None:
    with pytest.raises(SystemExit, match="more --steps"):
        counted([Step(epoch=EPOCHS, step=1, at=1.0)])


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        (None, ["float32", "float32 + XLA", "mixed", "mixed + XLA"]),
        ("float32", ["float32"]),
        ("jit", ["float32 + XLA"]),
        ("mixed,jit", ["mixed + XLA"]),
    ],
)
def test_a_variant_can_be_chosen(only: str | None, expected: list[str]) -> None:
    assert [str(each) for each in variants(only)] == expected


def test_a_device_that_nothing_measures_has_no_utilisation() -> None:
    line = row(
        Variant(mixed=True, jit=False), Speed(images_per_s=30, busy=None), Speed(images_per_s=20, busy=80)
    )
    assert line.split() == ["mixed", "30.0", "20.0", "1.50", "-", "/", "80", "%"]


def test_the_trainer_takes_the_arguments_of_its_side_and_the_other_side_is_a_program(tmp_path: Path) -> None:
    asked, variant = asked_by([]), Variant(mixed=True, jit=True)
    words = command(OURS, variant, asked, tmp_path, tmp_path)
    settings = command_from(words[words.index("trainer.task") + 1 :]).settings
    assert (settings.mixed_precision, settings.jit, settings.cache) == (True, True, True)
    compile(GUIDE, "guide", "exec")
    assert json.loads(command(FIT, variant, asked, tmp_path, tmp_path)[-1])["steps"] == asked.steps
