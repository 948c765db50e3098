"""Two workers train one model, as one process with the same global batch would, and an evaluator watches them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.trainer.conftest import Replica, two_replicas, write_demo_dataset
from tests.trainer.exports import check_export
from tests.trainer.survival import Small, output_tails, statuses, weights_of
from trainer.evaluator.evaluations import FILE_NAME

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

GLOBAL_BATCH = 32
EPOCHS = 3
STEPS = 4  # of an epoch


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Small]:
    data_dir: Path = tmp_path_factory.mktemp("tfds-synchronous")
    write_demo_dataset(data_dir, "--examples=200", "--image_size=32")
    made = Small(
        root=tmp_path_factory.mktemp("synchronous"), data_dir=data_dir, arguments=(f"--epochs={EPOCHS}",)
    )
    try:
        yield made
    finally:
        made.reap()


@pytest.fixture(scope="module")
def watched(small: Small) -> dict[str, Replica]:
    """A chief, a worker, and an evaluator that is killed and started again, of a run without normalization.

    With it, an evaluation in training would use each replica's own moving averages, an evaluator's their means.
    """
    trainers = two_replicas()
    evaluator = trainers[0] | {"task": {"type": "evaluator", "index": 0}}
    arguments = ("--norm=none", "--seed=1", f"--batch_size={GLOBAL_BATCH // 2}")
    killed = small.start("watched", *arguments, tf_config=evaluator)
    chief, worker = small.cluster("watched", *arguments, "--step_ms=100", configs=trainers)
    killed.wait_until(lambda replica: replica.events("evaluated"))
    killed.process.kill()
    again = small.start("watched", *arguments, tf_config=evaluator)
    assert statuses([chief, worker, again]) == [0, 0, 0], output_tails([chief, worker, again])
    return {"chief-0": chief, "worker-0": worker, "killed": killed, "evaluator-0": again}


def test_two_replicas_train_one_model(watched: dict[str, Replica]) -> None:
    trainers = {name: watched[name] for name in ("chief-0", "worker-0")}
    assert len({each.events("train_finished")[0]["weights_sha256"] for each in trainers.values()}) == 1
    for name, replica in trainers.items():
        (started,) = replica.events("train_started")
        assert started["replica"] == name
        assert started["strategy"] == "MultiWorkerMirroredStrategy"
        assert (started["replicas_in_sync"], started["global_batch_size"]) == (2, GLOBAL_BATCH)
        assert (started["weights"], started["initial_epoch"]) == ("random", 0)
        steps = [(line["epoch"], line["step"]) for line in replica.events("train_progress")]
        assert steps == sorted(set(steps))
        assert {(1, 1), (1, STEPS), (EPOCHS, 1), (EPOCHS, STEPS)} <= set(steps)
        assert all(0 <= line["accuracy"] <= 1 for line in replica.events("train_progress"))
    ends = [replica.events("epoch_finished") for replica in trainers.values()]
    assert [line["metrics"] for line in ends[0]] == [line["metrics"] for line in ends[1]]
    # What was reported at an epoch's last step is what Keras reports for the epoch.
    last = watched["chief-0"].events("train_progress")[-1]
    assert last["loss"] == pytest.approx(ends[0][-1]["metrics"]["loss"], rel=1e-4)
    assert last["accuracy"] == pytest.approx(ends[0][-1]["metrics"]["accuracy"], rel=1e-4)


def test_only_the_chief_leaves_anything_behind(small: Small, watched: dict[str, Replica]) -> None:
    chief, worker = watched["chief-0"], watched["worker-0"]
    assert check_export(small.run_dir("watched") / "model")["training"]["replicas_in_sync"] == 2
    assert len(chief.events("model_exported")) == 1
    assert worker.events("model_exported") == []
    # TensorFlow's own scratch files would go when the interpreter shuts down, which no replica waits for.
    left = {path.name for path in worker.scratch.iterdir() if not path.name.startswith("__autograph")}
    assert left <= {"__pycache__"}
    assert list((small.run_dir("watched") / "checkpoints").iterdir()) == []


def test_an_evaluator_follows_a_synchronous_training_and_a_restarted_one_repeats_nothing(
    small: Small, watched: dict[str, Replica]
) -> None:
    again = watched["evaluator-0"]
    evaluated = watched["killed"].events("evaluated") + again.events("evaluated")
    places = [(line["epoch"], line["step"]) for line in evaluated]
    folder = small.run_dir("watched") / "logs" / "evaluator-0"
    lines = [json.loads(line) for line in (folder / FILE_NAME).read_text().splitlines()]
    written = [(line["epoch"], line["step"]) for line in lines]
    assert len(set(written)) == len(written)
    assert written[-1] == (EPOCHS, 0)
    # A killed evaluator may have written an evaluation that it did not report.
    assert [place for place in written if place in places] == places
    assert len(written) - len(places) <= 1
    assert list(folder.glob("events.out.tfevents*"))
    finished = [line["metrics"] for line in watched["chief-0"].events("epoch_finished")]
    for line in evaluated:
        assert line["metrics"]["loss"] == pytest.approx(finished[line["epoch"] - 1]["val_loss"], rel=1e-3)
    assert again.events("train_started") == []


def curve(replica: Replica) -> list[float]:
    """The running mean of the training loss at the end of each epoch."""
    return [event["metrics"]["loss"] for event in replica.events("epoch_finished")]


def test_without_normalization_the_curves_of_two_workers_and_of_one_process_differ_by_rounding_alone(
    small: Small, watched: dict[str, Replica]
) -> None:
    """The same sums in another order."""
    single = small.start("alone", "--norm=none", "--seed=1", f"--batch_size={GLOBAL_BATCH}")
    assert statuses([single]) == [0], output_tails([single])
    print(f"\nloss after each of {EPOCHS} epochs, global batch {GLOBAL_BATCH}")  # noqa: T201 - the numbers are the claim
    for name, replica in (("one process", single), ("two workers", watched["chief-0"])):
        print(f"{name}: {' '.join(f'{loss:.6f}' for loss in curve(replica))}")  # noqa: T201 - as above
    assert len(curve(single)) == EPOCHS
    assert curve(single)[-1] < curve(single)[0], "it learns"
    assert curve(watched["chief-0"]) == pytest.approx(curve(single), rel=1e-4)


def test_two_workers_train_one_model_of_keras_3(small: Small) -> None:
    """tests/trainer/test_steps.py compares its steps on two devices with those of Keras 2."""
    arguments = ("--keras=3", "--norm=none", "--seed=1", "--epochs=2", f"--batch_size={GLOBAL_BATCH // 2}")
    cluster = small.cluster("keras-3", *arguments)
    assert statuses(cluster) == [0, 0], output_tails(cluster)
    assert weights_of(cluster)
    assert curve(cluster[0]) == curve(cluster[1])
    assert curve(cluster[0])[-1] < curve(cluster[0])[0], "it learns"
