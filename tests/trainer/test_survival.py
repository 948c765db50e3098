"""Runs that lose replicas, at any moment, and are started again: they continue, to the same model."""

import json
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.conftest import Replica, two_replicas
from tests.trainer.exports import check_export
from tests.trainer.survival import (
    Small,
    has_reached,
    has_saved,
    hold_upload,
    output_tails,
    release_upload,
    statuses,
    weights_of,
)

pytestmark = [pytest.mark.slow(seconds=160), pytest.mark.timeout(1500)]

STEPS = 16
LOST_WITHIN_S = 60
GRACE_S = 30


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory, data_dir: Path) -> Iterator[Small]:
    """Few examples and steps, each long enough for an epoch to be hit in its middle."""
    made = Small(
        root=tmp_path_factory.mktemp("survival"),
        data_dir=data_dir,
        arguments=(
            "--epochs=3",
            "--batch_size=1",
            f"--steps_per_epoch={STEPS}",
            "--evaluation_split=train[:8]",
            "--step_ms=60",
        ),
    )
    try:
        yield made
    finally:
        made.reap()


@pytest.fixture(scope="module")
def weights(small: Small) -> str:
    """The hash of the weights that two replicas end with when nothing happens."""
    replicas = small.cluster("undisturbed")
    assert statuses(replicas) == [0, 0], output_tails(replicas)
    return weights_of(replicas)


def finished(small: Small, run: str, replicas: list[Replica]) -> str:
    """The hash of the weights of a run that must have ended well."""
    assert statuses(replicas) == [0] * len(replicas), output_tails(replicas)
    check_export(small.run_dir(run) / "model")
    return weights_of(replicas)


def begun_at(replica: Replica) -> tuple[int, int]:
    """The epoch and step that a replica continued from."""
    (started,) = replica.events("train_started")
    return started["initial_epoch"], started["initial_step"]


def saved_at(event: Mapping[str, Any]) -> tuple[int, int]:
    return event["epoch"], event["step"]


def test_a_worker_killed_and_restarted_alone_ends_its_peer_and_the_run_continues_at_the_step(
    small: Small, weights: str
) -> None:
    configs = two_replicas()
    chief, worker = small.cluster("killed", "--checkpoint_steps=5", configs=configs)
    chief.wait_until(has_saved(1, 4))
    worker.process.kill()
    again = small.start("killed", "--checkpoint_steps=5", tf_config=configs[1])
    assert statuses([chief], LOST_WITHIN_S) == [134], output_tails([chief])
    assert not (small.run_dir("killed") / "model" / "export.json").exists()
    assert again.process.poll() is None, "it waits for a chief"
    replicas = [small.start("killed", "--checkpoint_steps=5", tf_config=configs[0]), again]
    assert finished(small, "killed", replicas) == weights
    saved = saved_at(chief.events("checkpoint_saved")[-1])
    for replica in replicas:
        assert begun_at(replica) == saved
        first = replica.events("train_progress")[0]
        assert (first["epoch"], first["step"]) == (saved[0] + 1, saved[1] + 1)


def test_a_run_that_is_terminated_again_and_again_continues_each_time_to_the_same_model(
    small: Small, weights: str
) -> None:
    """SIGTERM for the chief, for the worker, with three steps at once, whose checkpoint is then damaged, and in an
    evaluation.
    """
    run = "terminated"
    saved = terminated(small, run, "chief", at=(1, 5))
    assert len(saved) > 1, "by the clock too"

    first, second = terminated(small, run, "worker", "--steps_per_execution=3", at=(2, 5), begun=saved[-1])[
        -2:
    ]
    assert second[1] % 3 == 0, "replicas agree on the end of the steps that run in one call"
    newest = max((small.run_dir(run) / "checkpoints" / "chief").glob("*.data-00000-of-00001"), key=number_of)
    newest.write_bytes(newest.read_bytes()[:-100])
    assert second > first

    chief, worker = small.cluster(run, "--evaluation_step_ms=1000")
    chief.wait_until(has_saved(2, 0))
    worker.process.send_signal(signal.SIGTERM)
    assert statuses([chief, worker], GRACE_S) == [143, 143], output_tails([chief, worker])
    assert begun_at(chief) == first
    (passed_over,) = chief.events("checkpoint_damaged")
    assert passed_over["path"] == str(newest.with_suffix(""))
    assert [event["steps"] for event in worker.events("preempted")] == [2 * STEPS]
    assert chief.events("epoch_finished") == []

    again = small.cluster(run)
    assert finished(small, run, again) == weights
    assert [event["epoch"] for event in again[0].events("epoch_finished")] == [2, 3]
    assert {event["epoch"] for event in again[0].events("train_progress")} == {3}


def terminated(
    small: Small, run: str, asked: str, *flags: str, at: tuple[int, int], begun: tuple[int, int] = (0, 0)
) -> list[tuple[int, int]]:
    """Where checkpoints were saved in a life of a run that SIGTERM ended, the step of both replicas' end last."""
    replicas = dict(
        zip(("chief", "worker"), small.cluster(run, "--checkpoint_every_s=0.4", *flags), strict=True)
    )
    replicas["chief"].wait_until(lambda chief: chief.events("checkpoint_saved") and has_reached(*at)(chief))
    replicas[asked].process.send_signal(signal.SIGTERM)
    replicas[asked].process.send_signal(signal.SIGTERM)
    both = list(replicas.values())
    assert statuses(both, GRACE_S) == [143, 143], output_tails(both)
    assert begun_at(replicas["chief"]) == begun
    ends = [replica.events("preempted") for replica in both]
    assert [len(events) for events in ends] == [1, 1]
    (steps,) = {event["steps"] for (event,) in ends}
    saved = [saved_at(event) for event in replicas["chief"].events("checkpoint_saved")]
    epoch, step = saved[-1]
    assert epoch * STEPS + step == steps
    return saved


def test_a_process_terminated_in_its_evaluation_and_killed_in_its_export_trains_nothing_again(
    small: Small,
) -> None:
    """SIGTERM waits for the upload of the epoch; the export, and the report to a study, are the last process's."""
    pipe = hold_upload(small.run_dir("evaluating"), 1)
    arguments = ("--epochs=1", "--evaluation_step_ms=500")
    alone = small.start("evaluating", *arguments)
    alone.wait_until(has_reached(1, STEPS))
    alone.process.send_signal(signal.SIGTERM)
    alone.wait_until(lambda replica: replica.events("preemption_asked"))
    release_upload(pipe)
    assert statuses([alone], GRACE_S) == [143], output_tails([alone])
    assert [saved_at(event) for event in alone.events("checkpoint_saved")] == [(1, 0)]
    assert [event["saved"] for event in alone.events("preempted")] == [True]
    assert alone.events("epoch_finished") == []
    killed = small.start("evaluating", "--epochs=1")
    killed.wait_until(lambda replica: replica.events("epoch_finished"))
    killed.process.kill()
    assert statuses([killed]) == [-signal.SIGKILL]
    reached = killed.events("epoch_finished")[0]["metrics"]
    path = small.root / "output.metrics"  # the container took the trial's file with it
    trial = {"CLOUD_ML_TRIAL_ID": "3", "CLOUD_ML_HP_METRIC_FILE": str(path)}
    again = small.start("evaluating", "--epochs=1", environment=trial)
    finished(small, "evaluating", [again])
    assert [replica.events("train_progress") for replica in (killed, again)] == [[], []]
    assert check_export(small.run_dir("evaluating") / "model")["metrics"] == pytest.approx(reached)
    (reported,) = map(json.loads, path.read_text().splitlines())
    assert (reported["global_step"], float(reported["accuracy"])) == (str(STEPS), reached["val_accuracy"])


def number_of(path: Path) -> int:
    return int(path.name.removeprefix("ckpt-").partition(".")[0])


def test_a_frozen_chief_ends_its_worker_within_a_minute(small: Small) -> None:
    chief, worker = small.cluster("frozen", "--epochs=999")
    chief.wait_until(has_reached(1, 2))
    chief.process.send_signal(signal.SIGSTOP)
    assert statuses([worker], LOST_WITHIN_S) == [134], output_tails([worker])
    chief.process.kill()


def test_sigterm_before_the_training_ends_at_once_with_nothing_to_save(small: Small) -> None:
    worker = small.start("early", "--checkpoint_steps=5", tf_config=two_replicas()[1])
    worker.wait_until(lambda replica: b"This is worker-0" in replica.err.read_bytes())
    worker.process.send_signal(signal.SIGTERM)
    assert statuses([worker], GRACE_S) == [143], output_tails([worker])
    assert [event["saved"] for event in worker.events("preempted")] == [False]
