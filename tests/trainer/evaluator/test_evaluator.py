"""The evaluator: what it writes down, and how long it is waited for."""

import math
from pathlib import Path

import pytest

from tests.trainer.conftest import Runner
from tests.trainer.roles import Roles
from trainer.evaluator.evaluations import (
    FILE_NAME,
    Evaluation,
    await_evaluators,
    read_evaluations,
    write_evaluations,
)


def evaluation(epoch: int, step: int = 0) -> Evaluation:
    return Evaluation(
        epoch=epoch, step=step, iterations=epoch * 10 + step, metrics={"loss": 0.5, "accuracy": None}
    )


def test_what_an_earlier_process_evaluated_is_known(tmp_path: Path) -> None:
    directory = tmp_path / "evaluator-0"
    assert read_evaluations(directory) == []
    for number in range(3):
        known = [evaluation(1), evaluation(1, 4), evaluation(2)][:number]
        write_evaluations(directory, known)
        assert read_evaluations(directory) == known
    assert [entry.name for entry in directory.iterdir()] == [FILE_NAME]


def test_a_line_that_is_not_whole_is_evaluated_again(tmp_path: Path) -> None:
    write_evaluations(tmp_path, [evaluation(1)])
    path = tmp_path / FILE_NAME
    path.write_bytes(path.read_bytes() + b'{"epoch": 2, "st\n[]\n{"epoch": 3}\n\xff\n')
    assert read_evaluations(tmp_path) == [evaluation(1)]


def test_the_chief_does_not_wait_without_evaluators_or_once_all_have_finished(tmp_path: Path) -> None:
    await_evaluators(tmp_path, epochs=2, within_s=math.inf)
    for name in ("evaluator-0", "evaluator-1"):
        write_evaluations(tmp_path / name, [evaluation(2)])
    await_evaluators(tmp_path, epochs=2, within_s=math.inf)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_an_evaluator_computes_the_chiefs_metrics_in_16_bits_too(own_runner: Runner) -> None:
    roles = Roles(
        runner=own_runner,
        counts={"chief": 1, "evaluator": 1},
        arguments=("--epochs=1", "--steps_per_epoch=2", "--mixed_precision"),
    )
    results = own_runner.run_dir() / "logs" / "evaluator-0" / FILE_NAME
    evaluator = roles.start("evaluator")
    evaluator.wait_until(lambda _: results.exists())
    chief = roles.start("chief")
    assert [chief.wait(), evaluator.wait()] == [0, 0], evaluator.err.read_text()[-3000:]
    (finished,) = chief.events("epoch_finished")
    (evaluated,) = evaluator.events("evaluated")
    assert chief.events("train_started")[0]["strategy"] == "MirroredStrategy", "as the workload asks"
    for name, value in evaluated["metrics"].items():
        # In 32 bits the loss would differ by about 1e-3.
        assert value == pytest.approx(finished["metrics"][f"val_{name}"], rel=1e-6)
