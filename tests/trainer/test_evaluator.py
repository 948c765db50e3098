"""The evaluator: what it writes down, and that it follows a training that does not know of it."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.trainer.conftest import Runner, reap
from tests.trainer.roles import Roles, statuses
from trainer.evaluator.evaluations import FILE_NAME, Evaluation, Evaluations, read_evaluations


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


def test_the_end_waits_for_nobody_where_nobody_evaluates_or_all_are_done(tmp_path: Path) -> None:
    from trainer.evaluator.evaluator import await_evaluators  # TensorFlow: not at every worker's collection

    await_evaluators(tmp_path, epochs=2, within_s=60)
    for name in ("evaluator-0", "evaluator-1"):
        Evaluations(tmp_path / name).add(evaluation(2))
    await_evaluators(tmp_path, epochs=2, within_s=60)


def test_an_evaluator_that_is_behind_is_waited_for_only_so_long(tmp_path: Path) -> None:
    from trainer.evaluator.evaluator import await_evaluators

    Evaluations(tmp_path / "evaluator-0").add(evaluation(1))
    await_evaluators(tmp_path, epochs=2, within_s=0.2)
    assert (2, 0) not in Evaluations(tmp_path / "evaluator-0")


@pytest.fixture
def own_runner(tmp_path: Path, horses_dir: Path) -> Iterator[Runner]:
    runner = Runner(root=tmp_path, data_dir=horses_dir)
    yield runner
    reap(runner.started)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_an_evaluator_follows_a_synchronous_training_and_a_restarted_one_repeats_nothing(
    own_runner: Runner,
) -> None:
    roles = Roles(
        runner=own_runner,
        counts={"chief": 1, "worker": 1, "evaluator": 1},
        arguments=("--learning_rate=0.01", "--epochs=3", "--steps_per_epoch=2"),
    )
    evaluator = roles.start("evaluator")
    trainers = {"chief-0": roles.start("chief"), "worker-0": roles.start("worker")}
    evaluator.wait_until(lambda replica: replica.events("evaluated"))
    evaluator.process.kill()
    evaluator.process.wait()
    again = roles.start("evaluator")
    assert statuses(trainers | {"evaluator-0": again}) == {"chief-0": 0, "worker-0": 0, "evaluator-0": 0}

    told = evaluator.events("evaluated") + again.events("evaluated")
    places = [(line["epoch"], line["step"]) for line in told]
    folder = own_runner.run_dir / "logs" / "evaluator-0"
    lines = [json.loads(line) for line in (folder / FILE_NAME).read_text().splitlines()]
    written = [(line["epoch"], line["step"]) for line in lines]
    assert len(set(written)) == len(written)
    assert written[-1] == (3, 0)
    # One that is killed may have written an evaluation that it has told nobody of.
    assert [place for place in written if place in places] == places
    assert len(written) - len(places) <= 1
    assert list(folder.glob("events.out.tfevents*"))
    finished = [line["metrics"] for line in trainers["chief-0"].events("epoch_finished")]
    for line in told:
        assert line["metrics"]["loss"] == pytest.approx(finished[line["epoch"] - 1]["val_loss"], rel=1e-3)
    assert again.events("train_started") == []
    (started,) = trainers["chief-0"].events("train_started")
    assert started["strategy"] == "MultiWorkerMirroredStrategy"


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_an_evaluator_without_examples_says_what_to_repair(own_runner: Runner) -> None:
    roles = Roles(
        runner=own_runner, counts={"chief": 1, "evaluator": 1}, arguments=("--evaluation_split=none",)
    )
    replica = roles.start("evaluator")
    assert replica.wait() == 2
    assert "nothing to evaluate on" in replica.err.read_text()
