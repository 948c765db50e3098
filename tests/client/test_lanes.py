"""The states of replicas over time, from the lines of their log."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from trainmaster.client.logs.line import SERVICE, LogLine
from trainmaster.client.watch import lanes as module
from trainmaster.client.watch.lanes import LaneState, ReplicaLanes
from trainmaster.orchestrator.core.completion.replica_exit import NEXT_ATTEMPT

START = datetime(2026, 11, 23, 3, tzinfo=UTC)
CHIEF, WORKER = "workerpool0-0", "workerpool1-0"


def at(second: float) -> datetime:
    return START + timedelta(seconds=second)


def line(
    second: float, payload: str | dict[str, Any], replica: str = CHIEF, trial: str | None = None
) -> LogLine:
    return LogLine(
        insert_id=str(second),
        at=at(second),
        severity="INFO",
        job_id="1",
        replica=replica,
        trial_id=trial,
        payload=payload,
    )


def event(name: str, **more: object) -> dict[str, Any]:
    return {"event": name, "replica": "chief-0", **more}


STEP = event("train_progress", epoch=1, epochs=2, step=3, steps_per_epoch=10, loss=1.5, accuracy=0.5)


def states(*lines: LogLine, replica: str = CHIEF) -> list[str]:
    lanes = ReplicaLanes()
    lanes.expect([CHIEF, WORKER], at(0))
    lanes.add(lines)
    return [str(step.state) for lane in lanes.lanes if lane.name == replica for step in lane.steps]


def test_a_replica_starts_logs_trains_saves_and_is_done() -> None:
    assert states(
        line(1, "importing tensorflow"),
        line(2, event("train_started")),
        line(3, STEP),
        line(4, event("checkpoint_saved", path="gs://x/1")),
        line(5, STEP),
        line(6, event("train_finished")),
    ) == ["starting", "running", "training", "checkpoint", "training", "done"]


def test_a_preempted_replica_is_restarted_and_trains_again() -> None:
    assert states(
        line(1, STEP),
        line(2, event("preempted")),
        line(3, event("train_started")),
    ) == ["starting", "training", "preempted", "restarted", "training"]


def test_without_a_line_of_the_service_a_second_start_is_a_restart() -> None:
    lines = (line(1, STEP), line(2, event("peer_lost", peer="10.0.0.1")), line(3, event("train_started")))
    assert states(*lines) == ["starting", "training", "lost", "restarted", "training"]


def test_a_killed_replica_that_starts_again_is_a_restart() -> None:
    lines = (line(1, event("train_started")), line(2, STEP), line(3, event("train_started")), line(4, STEP))
    assert states(*lines) == ["starting", "training", "restarted", "training"]


def test_a_restart_of_the_job_restarts_every_replica() -> None:
    text = f"{NEXT_ATTEMPT}: the job is tried again."
    lines = (line(1, STEP), line(2, STEP, WORKER), line(3, text, SERVICE))
    assert states(*lines, replica=WORKER)[-1] == "restarted"
    assert states(*lines)[-1] == "restarted"


def test_a_failed_replica_keeps_its_state_when_the_job_ends() -> None:
    lanes = ReplicaLanes()
    lanes.expect([CHIEF, WORKER], at(0))
    lanes.add([line(1, f"The replica {CHIEF} exited with a non-zero status of 1. To find out more", SERVICE)])
    lanes.end(LaneState.CANCELLED, at(2))
    assert [lane.state for lane in lanes.lanes] == [LaneState.FAILED, LaneState.CANCELLED]


def test_the_end_of_a_trial_ends_its_replicas_alone() -> None:
    lanes = ReplicaLanes()
    lanes.add([line(1, STEP, trial="1"), line(1, STEP, trial="12")])
    lanes.end_trials({"1": (LaneState.DONE, at(2))})
    assert {lane.name: str(lane.state) for lane in lanes.lanes} == {
        f"1/{CHIEF}": "done",
        f"12/{CHIEF}": "training",
    }


def test_trials_are_in_the_order_of_their_numbers() -> None:
    lanes = ReplicaLanes()
    lanes.add([line(1, STEP, trial=trial) for trial in ("10", "9", "1")])
    assert [lane.name for lane in lanes.lanes] == [f"1/{CHIEF}", f"9/{CHIEF}", f"10/{CHIEF}"]


def test_a_replica_that_prints_the_lines_of_a_framework_trains() -> None:
    assert states(line(1, "Epoch 1/2"), line(2, "3/3 - 0s - loss: 0.5")) == ["starting", "training"]


def test_many_changes_and_many_replicas_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LANES_MAX", 3)
    lanes = ReplicaLanes()
    for second in range(0, 1000, 2):
        lanes.add([line(second, STEP), line(second + 1, event("checkpoint_saved"))])
    lanes.add([line(1, "x", f"workerpool1-{number}") for number in range(5)])
    assert len(lanes.lanes) == 3
    chief = lanes.lanes[0]
    assert len(chief.steps) == module.STEPS_MAX


@pytest.mark.parametrize(
    "payload", [{"event": 3}, {"event": ["x"]}, {"event": "train_progress", "replica": {}}, {}]
)
def test_a_payload_of_any_shape_is_a_line(payload: dict[str, Any]) -> None:
    assert states(line(1, payload))[-1] in ("running", "training")
