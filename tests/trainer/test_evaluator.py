"""The evaluator: what it writes down, and how long it is waited for."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.trainer.conftest import Runner, reap
from tests.trainer.roles import Roles
from trainer.evaluator.evaluations import (
    FILE_NAME,
    Evaluation,
    Evaluations,
    await_evaluators,
    read_evaluations,
)


def evaluation(epoch: int, step: int = 0) -> Evaluation:
    return Evaluation(
        epoch=epoch, step=step, iterations=epoch * 10 + step, metrics={"loss": 0.5, "accuracy": None}
    )


def test_what_an_earlier_process_evaluated_is_known_and_kept(tmp_path: Path) -> None:
    first = Evaluations(tmp_path / "evaluator-0")
    first.add(evaluation(1))
    first.add(evaluation(1, 4))
    second = Evaluations(tmp_path / "evaluator-0")
    assert (1, 0) in second
    assert (1, 4) in second
    assert (2, 0) not in second
    second.add(evaluation(2))
    path = tmp_path / "evaluator-0" / FILE_NAME
    assert list(read_evaluations(path)) == [evaluation(1), evaluation(1, 4), evaluation(2)]
    assert [entry.name for entry in path.parent.iterdir()] == [FILE_NAME]


def test_a_line_that_is_not_whole_is_evaluated_again(tmp_path: Path) -> None:
    Evaluations(tmp_path).add(evaluation(1))
    path = tmp_path / FILE_NAME
    path.write_text(path.read_text() + '{"epoch": 2, "st\n[]\n{"epoch": 3}\n')
    found = Evaluations(tmp_path)
    assert (1, 0) in found
    assert (2, 0) not in found


def test_the_chief_does_not_wait_without_evaluators_or_once_all_have_finished(tmp_path: Path) -> None:
    await_evaluators(tmp_path, epochs=2, within_s=60)
    for name in ("evaluator-0", "evaluator-1"):
        Evaluations(tmp_path / name).add(evaluation(2))
    await_evaluators(tmp_path, epochs=2, within_s=60)


def test_an_evaluator_that_is_behind_is_waited_for_only_so_long(tmp_path: Path) -> None:
    Evaluations(tmp_path / "evaluator-0").add(evaluation(1))
    await_evaluators(tmp_path, epochs=2, within_s=0.2)
    assert (2, 0) not in Evaluations(tmp_path / "evaluator-0")


@pytest.fixture
def own_runner(tmp_path: Path, horses_dir: Path) -> Iterator[Runner]:
    runner = Runner(root=tmp_path, data_dir=horses_dir)
    yield runner
    reap(runner.started)


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_an_evaluator_without_examples_says_what_to_repair(own_runner: Runner) -> None:
    roles = Roles(
        runner=own_runner, counts={"chief": 1, "evaluator": 1}, arguments=("--evaluation_split=none",)
    )
    replica = roles.start("evaluator")
    assert replica.wait() == 2
    assert "An evaluator needs an evaluation split" in replica.err.read_text()
