"""Runs that lose replicas, at any moment, and are started again: they continue, to the same model."""

import json
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.trainer.conftest import Replica, write_demo_dataset
from tests.trainer.exports import check_export
from tests.trainer.survival import (
    Small,
    has_reached,
    has_saved,
    said_in,
    statuses,
    two_replicas,
    weights_of,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1500)]

STEPS = 100
LOST_WITHIN_S = 60
GRACE_S = 30


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Small]:
    """Two examples a step over two replicas, or one: epochs long enough to be hit in their middle."""
    data_dir = tmp_path_factory.mktemp("tfds-survival")
    write_demo_dataset(data_dir, "--examples=600", "--image_size=32")
    made = Small(
        root=tmp_path_factory.mktemp("survival"),
        data_dir=data_dir,
        arguments=(
            "--epochs=3",
            "--batch_size=1",
            f"--steps_per_epoch={STEPS}",
            "--evaluation_split=train[:200]",
        ),
    )
    try:
        yield made
    finally:
        made.reap()


@pytest.fixture(scope="module")
def uninterrupted(small: Small) -> str:
    """The hash of the weights that two replicas end with when nothing happens."""
    replicas = small.cluster("uninterrupted")
    assert statuses(replicas) == [0, 0], said_in(replicas)
    return weights_of(replicas)


def finished(small: Small, run: str, replicas: list[Replica]) -> str:
    """The hash of the weights of a run that must have ended well."""
    assert statuses(replicas) == [0] * len(replicas), said_in(replicas)
    check_export(small.run_dir(run) / "model")
    return weights_of(replicas)


def test_a_worker_killed_and_restarted_alone_ends_its_peer_and_the_run_continues_at_the_step(
    small: Small, uninterrupted: str
) -> None:
    configs = two_replicas()
    chief, worker = small.cluster("killed", "--checkpoint_steps=30", configs=configs)
    chief.wait_until(has_saved(1, 20))
    worker.process.kill()
    again = small.start("killed", "--checkpoint_steps=30", tf_config=configs[1])
    assert statuses([chief], LOST_WITHIN_S) == [134], said_in([chief])
    assert not (small.run_dir("killed") / "model" / "export.json").exists()
    assert again.process.poll() is None, "it waits for a chief"
    replicas = [small.start("killed", "--checkpoint_steps=30", tf_config=configs[0]), again]
    assert finished(small, "killed", replicas) == uninterrupted
    saved = chief.events("checkpoint_saved")[-1]
    for replica in replicas:
        (started,) = replica.events("train_started")
        assert (started["initial_epoch"], started["initial_step"]) == (saved["epoch"], saved["step"])
        first = replica.events("train_progress")[0]
        assert (first["epoch"], first["step"]) == (started["initial_epoch"] + 1, started["initial_step"] + 1)


@pytest.mark.parametrize("asked", ["chief", "worker"])
def test_sigterm_saves_the_next_step_of_all_replicas_and_a_damaged_checkpoint_gives_way(
    small: Small, uninterrupted: str, asked: str
) -> None:
    run = f"terminated-{asked}"
    replicas = dict(zip(("chief", "worker"), small.cluster(run, "--checkpoint_every_s=0.4"), strict=True))
    replicas["chief"].wait_until(has_saved(1, 10))
    replicas["chief"].wait_until(has_reached(2, 20))
    replicas[asked].process.send_signal(signal.SIGTERM)
    replicas[asked].process.send_signal(signal.SIGTERM)
    assert statuses(list(replicas.values()), GRACE_S) == [143, 143], said_in(list(replicas.values()))
    ends = [replica.events("preempted") for replica in replicas.values()]
    assert [len(events) for events in ends] == [1, 1]
    (steps,) = {event["steps"] for (event,) in ends}
    saved = replicas["chief"].events("checkpoint_saved")[-1]
    assert saved["epoch"] * STEPS + saved["step"] == steps
    if asked == "worker":
        newest = Path(f"{saved['path']}.data-00000-of-00001")
        newest.write_bytes(newest.read_bytes()[:-100])
        saved = replicas["chief"].events("checkpoint_saved")[-2]
    again = small.cluster(run)
    assert finished(small, run, again) == uninterrupted
    (started,) = again[0].events("train_started")
    assert (started["initial_epoch"], started["initial_step"]) == (saved["epoch"], saved["step"])
    passed_over = [event["path"] for event in again[0].events("checkpoint_damaged")]
    assert [path.endswith(".data") for path in passed_over] == [False] * (asked == "worker")


@pytest.mark.parametrize("frozen", ["chief", "worker"])
def test_a_frozen_replica_ends_the_other_within_a_minute(small: Small, frozen: str) -> None:
    replicas = dict(zip(("chief", "worker"), small.cluster(f"frozen-{frozen}", "--epochs=999"), strict=True))
    replicas["chief"].wait_until(has_reached(1, 20))
    victim = replicas.pop(frozen)
    victim.process.send_signal(signal.SIGSTOP)
    assert statuses(list(replicas.values()), LOST_WITHIN_S) == [134], said_in(list(replicas.values()))
    victim.process.kill()


def test_a_peer_that_never_starts_is_waited_for_as_long_as_asked(small: Small) -> None:
    chief = small.start("alone", "--peers_within_s=2", tf_config=two_replicas()[0])
    assert statuses([chief]) == [134], said_in([chief])
    (missing,) = chief.events("peers_missing")
    assert "127.0.0.1" in missing["message"]
    assert missing["severity"] == "ERROR"


def test_sigterm_before_the_training_ends_at_once_with_nothing_to_save(small: Small) -> None:
    worker = small.start("early", "--checkpoint_steps=5", tf_config=two_replicas()[1])
    worker.wait_until(lambda replica: b"says: this is worker-0" in replica.err.read_bytes())
    worker.process.send_signal(signal.SIGTERM)
    assert statuses([worker], GRACE_S) == [143], said_in([worker])
    assert [event["saved"] for event in worker.events("preempted")] == [False]


def test_sigterm_in_an_evaluation_ends_at_once_and_only_the_evaluation_is_repeated(
    small: Small, uninterrupted: str
) -> None:
    for number in range(3):  # a signal that comes behind the evaluation says nothing of it
        run = f"evaluating-{number}"
        replicas = small.cluster(run)
        replicas[0].wait_until(has_saved(2, 0))
        replicas[1].process.send_signal(signal.SIGTERM)
        assert statuses(replicas, GRACE_S) == [143, 143], said_in(replicas)
        if replicas[1].events("preemption_asked")[0]["steps_to_save"] == 0:
            break
    assert [event["steps"] for event in replicas[1].events("preempted")] == [2 * STEPS]
    assert [event["epoch"] for event in replicas[0].events("epoch_finished")] == [1]
    again = small.cluster(run)
    assert finished(small, run, again) == uninterrupted
    assert [event["epoch"] for event in again[0].events("epoch_finished")] == [2, 3]
    assert {event["epoch"] for event in again[0].events("train_progress")} == {3}


def test_a_process_killed_in_its_export_exports_the_same_model_when_started_again(small: Small) -> None:
    alone = small.start("exporting", "--epochs=1")
    alone.wait_until(lambda replica: replica.events("epoch_finished"))
    alone.process.kill()
    assert statuses([alone]) == [-signal.SIGKILL]
    (manifest,) = (small.run_dir("exporting") / "checkpoints" / "chief").glob("ckpt-1.json")
    reached = alone.events("epoch_finished")[0]["metrics"]
    assert json.loads(manifest.read_text())["epoch"] == 1
    again = small.start("exporting", "--epochs=1")
    finished(small, "exporting", [again])
    assert again.events("train_progress") == []
    assert check_export(small.run_dir("exporting") / "model")["metrics"] == pytest.approx(reached)


def test_a_checkpoint_of_another_model_is_refused(small: Small) -> None:
    alone = small.start("other", "--epochs=999")
    alone.wait_until(has_saved(1, 0))
    alone.process.send_signal(signal.SIGTERM)
    assert statuses([alone], GRACE_S) == [143], said_in([alone])
    again = small.start("other", "--norm=none")
    assert statuses([again]) == [2], said_in([again])
    assert re.search(r"The checkpoint \S+ckpt-\d+ is of another model", again.err.read_text())
