"""The states of each replica over time, from the lines of its log.

The events are those of docs/reference/replica.md, "What a trainer leaves behind". A program that writes none of them
is starting until its first line, and running until its job ends.
"""

import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from trainmaster.client.logs.line import SERVICE, LogLine
from trainmaster.client.logs.report import STARTED
from trainmaster.client.terminal import one_line
from trainmaster.orchestrator.core.completion.replica_exit import NEXT_ATTEMPT, parse_exit

LANES_MAX = 1000
STEPS_MAX = 100
"""Changes of state that a lane keeps, the last ones."""
DETAIL_MAX_CHARS = 200


class LaneState(StrEnum):
    """What a replica does."""

    STARTING = "starting"
    """Its job runs, and it has logged nothing."""
    RUNNING = "running"
    """It logs lines, and no progress yet."""
    TRAINING = "training"
    CHECKPOINT = "checkpoint"
    SERVING = "serving"
    """A worker or parameter server that waits for the coordinator of a `parameter_server` strategy."""
    EVALUATING = "evaluating"
    PREEMPTED = "preempted"
    RESTARTED = "restarted"
    LOST = "lost"
    """It cannot reach another replica."""
    FAILED = "failed"
    CANCELLED = "cancelled"
    DONE = "done"


ENDED = frozenset({LaneState.FAILED, LaneState.CANCELLED, LaneState.DONE})
_INTERRUPTED = frozenset({LaneState.PREEMPTED, LaneState.LOST, LaneState.FAILED})
_AFTER: Mapping[object, LaneState] = {
    "train_started": LaneState.TRAINING,
    "train_progress": LaneState.TRAINING,
    "epoch_finished": LaneState.TRAINING,
    "checkpoint_saved": LaneState.CHECKPOINT,
    "preemption_asked": LaneState.PREEMPTED,
    "preempted": LaneState.PREEMPTED,
    "peer_lost": LaneState.LOST,
    "peers_missing": LaneState.LOST,
    "serving": LaneState.SERVING,
    "evaluated": LaneState.EVALUATING,
    "train_finished": LaneState.DONE,
    "serving_finished": LaneState.DONE,
    "evaluator_finished": LaneState.DONE,
}


@dataclass(frozen=True, kw_only=True)
class LaneStep:
    """A state, since when, and what its line says."""

    state: LaneState
    at: datetime
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Lane:
    """One replica; of a tuning, one of a trial's."""

    name: str
    """As in `LogLine.lane`: `workerpool0-0`, or `3/workerpool0-0` of the trial 3."""
    steps: tuple[LaneStep, ...]
    """At least one, oldest first."""

    @property
    def state(self) -> LaneState:
        return self.steps[-1].state


@dataclass
class _Building:
    """A lane as it grows."""

    steps: deque[LaneStep] = field(default_factory=lambda: deque(maxlen=STEPS_MAX))
    has_started: bool = False
    """It has said that its training started."""

    def step(self, state: LaneState, at: datetime, detail: str = "") -> None:
        if not self.steps or self.steps[-1].state is not state:
            self.steps.append(LaneStep(state=state, at=at, detail=one_line(detail, DETAIL_MAX_CHARS)))

    def end(self, state: LaneState, at: datetime) -> None:
        if self.steps and self.steps[-1].state not in ENDED:
            self.step(state, at)


class ReplicaLanes:
    """Collects the lanes of a run from its log, in bounded memory."""

    def __init__(self) -> None:
        self._lanes: dict[str, _Building] = {}

    def expect(self, names: Iterable[str], at: datetime) -> None:
        """These replicas are starting, unless they are known."""
        for name in names:
            if (lane := self._lane(name)) is not None and not lane.steps:
                lane.step(LaneState.STARTING, at)

    def add(self, lines: Iterable[LogLine]) -> None:
        """Continue with these lines of the log, oldest first."""
        for line in lines:
            if line.replica == SERVICE:
                self._add_service(line)
            elif (lane := self._lane(line.lane)) is not None:
                _add(lane, line)

    def end(self, state: LaneState, at: datetime) -> None:
        """The job has ended, and with it every replica that has not said so itself."""
        for lane in self._lanes.values():
            lane.end(state, at)

    def end_trials(self, ended: Mapping[str, tuple[LaneState, datetime]]) -> None:
        """These trials, by id, have ended, and with them their replicas."""
        for name, lane in self._lanes.items():
            if (end := ended.get(name.partition("/")[0])) is not None:
                lane.end(*end)

    @property
    def lanes(self) -> Sequence[Lane]:
        """By trial and replica, as people count."""
        names = sorted(self._lanes, key=_order)
        return [Lane(name=name, steps=tuple(self._lanes[name].steps)) for name in names]

    def _lane(self, name: str) -> _Building | None:
        if name not in self._lanes and len(self._lanes) >= LANES_MAX:
            return None
        return self._lanes.setdefault(name, _Building())

    def _add_service(self, line: LogLine) -> None:
        """Two lines of the service are published: the next attempt of a job, and the exit of a replica."""
        trial, text = f"{line.trial_id}/" if line.trial_id else "", line.text[:DETAIL_MAX_CHARS]
        if text.startswith(NEXT_ATTEMPT):
            for name, lane in self._lanes.items():
                if name.startswith(trial):
                    lane.step(LaneState.RESTARTED, line.at, text)
        elif (exited := parse_exit(text)) is not None and (trial + exited.replica) in self._lanes:
            self._lanes[trial + exited.replica].step(LaneState.FAILED, line.at, text)


def _add(lane: _Building, line: LogLine) -> None:
    payload = line.payload if isinstance(line.payload, Mapping) else {}
    state = _AFTER.get(_text(payload, "event"))
    if state is None and not line.reports:
        if not lane.steps or lane.steps[-1].state is LaneState.STARTING:
            lane.step(LaneState.RUNNING, line.at)
        return
    if payload.get("event") == STARTED:
        # A killed process says nothing: that it starts again is the first that is known of it.
        if lane.has_started or (lane.steps and lane.steps[-1].state in _INTERRUPTED):
            lane.step(LaneState.RESTARTED, line.at)
        lane.has_started = True
    about = _text(payload, "path") or _text(payload, "peer")
    shown = _text(payload, "message") if payload.get("event") != "train_progress" and not about else about
    lane.step(state or LaneState.TRAINING, line.at, shown)


def _text(payload: Mapping[str, Any], key: str) -> str:  # Any: an unchecked payload
    value = payload.get(key)
    return value[:DETAIL_MAX_CHARS] if isinstance(value, str) else ""


def _order(name: str) -> tuple[tuple[int, str], ...]:
    return tuple((int(part) if part.isdecimal() else 0, part) for part in re.findall(r"\d{1,18}|\D+", name))
