"""Short stories of what the flows do, each as the deliveries that make it, and what it must come to.

A story is told once undisturbed to learn its calls, and then again with an accident at each of them.
"""

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from orchestrator.adapters.memory import MemoryJobs
from orchestrator.core.errors import SubmissionDeferred
from orchestrator.core.launch.event import Arrival
from orchestrator.core.launch.submission import Submission
from orchestrator.core.retrain.arrival import ArrivedObject
from orchestrator.core.run import Job, JobState, RunState
from orchestrator.core.settle.outcome import END_OF
from orchestrator.core.trial import Measured, Trial, TrialState
from orchestrator.flow.admission import settle_and_admit
from orchestrator.flow.launch import launch
from orchestrator.flow.orders import take_order
from tests.contract.retraining import DATA, MANUAL, SMALL, RuleWorld, rule
from tests.contract.world import LEASE, MODELS, PROJECT, START, Boundary, export_manifest

CHALLENGER = {**SMALL, "champion": {"metric": "accuracy", "goal": "maximize"}}
TUNED = {
    **SMALL,
    "tuning": {
        "metrics": [{"id": "accuracy", "goal": "maximize"}],
        "parameters": {"rate": {"type": "double", "min": 0.1, "max": 1.0}},
        "max_trials": 2,
        "parallel_trials": 2,
    },
}
TICKS_MAX = 6


class RoomyJobs(MemoryJobs):
    """A JobService that has no room while it is full."""

    full = False

    def submit(self, submission: Submission) -> Job:
        if self.full:
            raise SubmissionDeferred(429, "the quota is used up")
        return super().submit(submission)


class Stage(RuleWorld):
    """A world that remembers what was dropped in a story, so that a delivery can be repeated."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs = self.service = RoomyJobs(self.clock, project=PROJECT)
        self.arrivals: dict[str, Arrival] = {}

    def dropped(self, name: str, document: object) -> Arrival:
        if name not in self.arrivals:
            self.arrivals[name] = self.drop(json.dumps(document).encode(), f"requests/{name}.json")
            self.wait(1)
        return self.arrivals[name]

    def job(self, number: int) -> Job:
        """The nth job, in the order of their making; whoever was to submit it may have died."""
        for _ in range(TICKS_MAX):
            if len(self.jobs.all()) > number:
                break
            self.wait(LEASE.total_seconds() / 2)
            self.sweep()
            self.tick()
        return self.jobs.all()[number]


@dataclass(frozen=True, kw_only=True)
class Step:
    """One delivery, or something the world does by itself: then `again` is False and it makes no calls."""

    act: Callable[[Stage, Boundary], object]
    again: bool = True


@dataclass(frozen=True, kw_only=True)
class Scene:
    """`ends`: the states of the runs, by when they were asked for. `jobs`: how many there are in the end."""

    steps: tuple[Step, ...]
    ends: tuple[RunState, ...]
    jobs: int
    champion: Mapping[str, float] = field(default_factory=dict)


def uploaded(name: str, document: object = SMALL) -> Step:
    def act(stage: Stage, boundary: Boundary) -> object:
        return launch(stage.services(boundary), stage.dropped(name, document), take_order)

    return Step(act=act)


def published(key: str, document: object = SMALL) -> Step:
    data = base64.b64encode(json.dumps(document).encode()).decode()

    def act(stage: Stage, boundary: Boundary) -> object:
        message = {"data": data, "messageId": "1", "attributes": {"idempotency_key": key}}
        return launch(stage.services(boundary), stage.published(message), take_order)

    return Step(act=act)


def becomes(number: int, state: JobState) -> Step:
    return Step(act=lambda stage, _: stage.jobs.become(stage.job(number).name, state), again=False)


def trained(number: int, accuracy: float = 0.5) -> Step:
    def act(stage: Stage, _: Boundary) -> None:
        job = stage.job(number)
        _export(stage, job.output_uri, accuracy)
        stage.jobs.become(job.name, JobState.SUCCEEDED)

    return Step(act=act, again=False)


def tried(number: int) -> Step:
    """Both trials of the nth job end well, and left a model each."""

    def act(stage: Stage, _: Boundary) -> None:
        job = stage.job(number)
        trials = [
            Trial(
                id=str(each),
                state=TrialState.SUCCEEDED,
                parameters={"rate": 0.1 * each},
                final=Measured(metrics={"accuracy": 0.4 + 0.1 * each}, step=1),
            )
            for each in (1, 2)
        ]
        for trial in trials:
            _export(stage, f"{job.output_uri}/{trial.id}", 0.5)
        stage.jobs.become(job.name, JobState.SUCCEEDED, trials=trials)

    return Step(act=act, again=False)


def _export(stage: Stage, output_uri: str, accuracy: float) -> None:
    prefix = f"{output_uri}/model/".removeprefix(f"gs://{MODELS}/")
    manifest = {**export_manifest(f"gs://{MODELS}/{prefix}"), "metrics": {"accuracy": accuracy}}
    stage.objects.write(MODELS, prefix + "saved_model.pb", b"graph", if_generation=None)
    stage.objects.write(MODELS, prefix + "export.json", json.dumps(manifest).encode(), if_generation=None)


def logged(number: int) -> Step:
    """The sink delivers what the service wrote of the nth job's end, or of its going on."""

    def act(stage: Stage, boundary: Boundary) -> object:
        job = stage.job(number)
        return list(
            settle_and_admit(stage.services(boundary), stage.hint(job, tells_end=job.state in END_OF))
        )

    return Step(act=act)


def full(so_it_is: bool) -> Step:
    return Step(act=lambda stage, _: setattr(stage.service, "full", so_it_is), again=False)


def deleted(number: int) -> Step:
    return Step(act=lambda stage, _: stage.jobs.remove(stage.job(number).name), again=False)


def waited(seconds: float) -> Step:
    return Step(act=lambda stage, _: stage.wait(seconds), again=False)


def rule_dropped(document: object) -> Step:
    return Step(act=lambda stage, boundary: stage.tell_rule(stage.put_rule_once(document), boundary))


def data_came(number: int) -> Step:
    arrival = ArrivedObject(
        bucket=DATA, name=f"{number}.jpg", generation=number + 1, size_bytes=1, created_at=START
    )
    return Step(act=lambda stage, boundary: stage.crossing_log(boundary).append(arrival))


def fired(key: str) -> Step:
    return Step(act=lambda stage, boundary: stage.order({"fire": {"rule": "cassava"}}, key, boundary))


def rolled_back(name: str) -> Step:
    return uploaded(name, {"rollback": {"model_name": "cassava"}})


def _ticked(stage: Stage, boundary: Boundary) -> None:
    stage.sweep(boundary)
    stage.tick(boundary)


TICK = Step(act=_ticked, again=False)
ENDED = (RunState.SUCCEEDED,)


SCENES: Mapping[str, Scene] = {
    "an upload, its job's running and its end": Scene(
        steps=(
            uploaded("a"),
            uploaded("a"),
            becomes(0, JobState.RUNNING),
            logged(0),
            trained(0),
            logged(0),
            logged(0),
            TICK,
        ),
        ends=ENDED,
        jobs=1,
    ),
    "a message with a key, and an end that no entry told": Scene(
        steps=(published("k"), trained(0), TICK, published("k")), ends=ENDED, jobs=1
    ),
    "a faulty request": Scene(
        steps=(uploaded("a", {"model_name": "x"}), TICK), ends=(RunState.REJECTED,), jobs=0
    ),
    "a job that fails": Scene(
        steps=(uploaded("a"), becomes(0, JobState.FAILED), waited(120), logged(0)),
        ends=(RunState.FAILED,),
        jobs=1,
    ),
    "a job that a user cancels": Scene(
        steps=(uploaded("a"), becomes(0, JobState.CANCELLED), TICK, logged(0)),
        ends=(RunState.CANCELLED,),
        jobs=1,
    ),
    "a job that a user deletes": Scene(
        steps=(uploaded("a"), deleted(0), waited(601), TICK), ends=(RunState.FAILED,), jobs=0
    ),
    "no room for a while": Scene(
        steps=(
            full(True),
            uploaded("a"),
            waited(31),
            TICK,
            full(False),
            waited(61),
            TICK,
            trained(0),
            logged(0),
        ),
        ends=ENDED,
        jobs=1,
    ),
    "a study": Scene(steps=(uploaded("a", TUNED), tried(0), logged(0), TICK), ends=ENDED, jobs=1),
    "two challengers, and an order to go back": Scene(
        steps=(
            uploaded("a", CHALLENGER),
            trained(0, 0.5),
            logged(0),
            TICK,
            uploaded("b", CHALLENGER),
            trained(1, 0.7),
            logged(1),
            TICK,
            rolled_back("back"),
            TICK,
        ),
        ends=ENDED * 2,
        jobs=2,
        champion={"cassava": 0.5},
    ),
    "data that fires a rule": Scene(
        steps=(
            rule_dropped(rule()),
            *(data_came(number) for number in range(4)),
            TICK,
            waited(61),
            TICK,
            trained(0),
            logged(0),
        ),
        ends=ENDED,
        jobs=1,
    ),
    "an order that replaces a run": Scene(
        steps=(
            rule_dropped(rule(MANUAL, while_running="replace")),
            fired("1"),
            waited(1),
            fired("2"),
            TICK,
            trained(1),
            logged(1),
        ),
        ends=(RunState.CANCELLED, RunState.SUCCEEDED),
        jobs=2,
    ),
}
