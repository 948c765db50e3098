"""What stories are made of: deliveries to the functions, and what the world does by itself."""

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass

from tests.contract.life.stage import Stage
from tests.contract.retraining import DATA, SMALL
from tests.contract.rooms import NO_CAPACITY
from tests.contract.world import START, Boundary
from trainmaster.orchestrator.core.requests.incoming import IncomingDocument
from trainmaster.orchestrator.core.retraining.arrivals import ArrivedObject
from trainmaster.orchestrator.core.runs.job import JobState, Measured, Trial, TrialState
from trainmaster.orchestrator.core.runs.states import END_OF
from trainmaster.orchestrator.flows.intake import take_and_admit
from trainmaster.orchestrator.flows.submission.queue_pass import complete_and_admit


@dataclass(frozen=True, kw_only=True)
class Step:
    """One delivery, or something the world does by itself, which makes no calls.

    `again`: the delivery is repeated until it is acknowledged. A tick is not: the next one comes anyway.
    """

    act: Callable[[Stage, Boundary], object]
    again: bool = True


def uploaded(name: str, document: object = SMALL) -> Step:
    return Step(act=lambda stage, boundary: _launched(stage, boundary, stage.dropped(name, document)))


def published(key: str, document: object = SMALL) -> Step:
    data = base64.b64encode(json.dumps(document).encode()).decode()
    message = {"data": data, "messageId": "1", "attributes": {"idempotency_key": key}}
    return Step(act=lambda stage, boundary: _launched(stage, boundary, stage.published(message)))


def _launched(stage: Stage, boundary: Boundary, incoming: IncomingDocument) -> object:
    return list(take_and_admit(stage.services(boundary), incoming))


def becomes(number: int, state: JobState) -> Step:
    return Step(act=lambda stage, _: stage.jobs.become(stage.job(number).name, state), again=False)


def trained(number: int, accuracy: float = 0.5) -> Step:
    def act(stage: Stage, _: Boundary) -> None:
        job = stage.job(number)
        stage.export(job.output_uri, accuracy)
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
            stage.export(f"{job.output_uri}/{trial.id}", 0.5)
        stage.jobs.become(job.name, JobState.SUCCEEDED, trials=trials)

    return Step(act=act, again=False)


def logged(number: int) -> Step:
    """The sink delivers what the service wrote of the nth job's end, or of its going on."""

    def act(stage: Stage, boundary: Boundary) -> object:
        job = stage.job(number)
        hint = stage.hint(job, tells_end=job.state in END_OF)
        return list(complete_and_admit(stage.services(boundary), hint))

    return Step(act=act)


def finished(number: int, accuracy: float = 0.5) -> tuple[Step, Step]:
    """The nth job ends well, and its log says so."""
    return trained(number, accuracy), logged(number)


def full(so_it_is: bool) -> Step:
    return Step(act=lambda stage, _: setattr(stage.room, "places", 0 if so_it_is else None), again=False)


def too_fast(times: int) -> Step:
    return Step(act=lambda stage, _: setattr(stage.room, "too_fast", times), again=False)


def stocked_out(number: int) -> Step:
    """The nth job ends before it ran: there is no capacity for it."""

    def act(stage: Stage, _: Boundary) -> None:
        stage.jobs.become(stage.job(number).name, JobState.FAILED, error=NO_CAPACITY, ran=False)

    return Step(act=act, again=False)


def deleted(number: int) -> Step:
    return Step(act=lambda stage, _: stage.jobs.remove(stage.job(number).name), again=False)


def waited(seconds: float) -> Step:
    return Step(act=lambda stage, _: stage.wait(seconds), again=False)


def rule_dropped(document: object) -> Step:
    return Step(act=lambda stage, boundary: stage.deliver_rule(stage.put_rule_once(document), boundary))


def data_came(number: int) -> Step:
    incoming = ArrivedObject(
        bucket=DATA, name=f"{number}.jpg", generation=number + 1, size_bytes=1, created_at=START
    )
    return Step(act=lambda stage, boundary: stage.crossing_log(boundary).append(incoming))


def fired(key: str) -> Step:
    return Step(act=lambda stage, boundary: stage.order({"fire": {"rule": "cassava"}}, key, boundary))


def pushed(digit: str) -> Step:
    """Artifact Registry tells of an image of that digest, with the same message each time."""
    return Step(act=lambda stage, boundary: stage.signal(stage.pushed(digit, message_id=digit), boundary))


def noticed(number: int) -> Step:
    """The job of the nth run ends; its log entry and, once that is settled, its notices are delivered."""
    return Step(act=lambda stage, boundary: stage.finish(number, boundary))


def rolled_back(name: str) -> Step:
    return uploaded(name, {"rollback": {"model_name": "cassava"}})


def _ticked(stage: Stage, boundary: Boundary) -> None:
    stage.reconcile(boundary)
    stage.tick(boundary)


def cancelled(number: int) -> Step:
    """An order to end the nth run, in the order in which they were asked for."""

    def act(stage: Stage, boundary: Boundary) -> object:
        order = {"cancel": {"run": stage.records()[number].run_id}}
        return _launched(stage, boundary, stage.dropped(f"cancel-{number}", order))

    return Step(act=act)


TICK = Step(act=_ticked, again=False)
RULE_REMOVED = Step(act=lambda stage, _: stage.remove_rule(), again=False)
