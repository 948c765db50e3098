"""bench/trainer_gpu.py, on the processor: what it counts, and that both sides run with its arguments."""

from pathlib import Path

import pytest

from bench.trainer_gpu import EPOCHS, Speed, Step, Variant, counted, main, row, steps_of, variants
from tests.networks import SMALL_NETWORK


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


@pytest.mark.slow(seconds=10)
def test_both_sides_train_and_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a small network for the ResNet50 of both."""
    (tmp_path / "sitecustomize.py").write_text(
        SMALL_NETWORK
    )  # Python imports it at the start of each process
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "1")  # as both sides choose, later
    tiny = ["--steps=4", "--batch_size=4", "--image_size=32", "--examples=60", "--only=float32"]
    assert main(tiny) == 0
    name, ours, fit, ratio, *_ = capsys.readouterr().out.splitlines()[1].split()
    assert name == "float32"
    assert float(ratio) == pytest.approx(float(ours) / float(fit), rel=0.1, abs=0.01)
