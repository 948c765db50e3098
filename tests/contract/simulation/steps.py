"""Steps of scenarios: deliveries to the functions, and changes of the world around them."""

import base64
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from tests.contract.boundaries import At, only_at, raising
from tests.contract.retraining import DATA, SMALL
from tests.contract.rooms import NO_CAPACITY
from tests.contract.simulation.scenario_world import ScenarioWorld
from tests.contract.world import INBOX, REGION, START, Boundary, Killed
from tests.narrowing import present
from trainmaster.orchestrator.core.requests.incoming import IncomingDocument
from trainmaster.orchestrator.core.requests.request import RequestRules
from trainmaster.orchestrator.core.runs.job import Failure, JobState, Measured, Trial, TrialState
from trainmaster.orchestrator.core.runs.states import END_OF
from trainmaster.orchestrator.flows.intake import take_and_admit
from trainmaster.orchestrator.flows.queue_pass import complete_and_admit


@dataclass(frozen=True, kw_only=True)
class Step:
    """One delivery, or a change of the world, which makes no calls.

    `retried`: the delivery is repeated until it is acknowledged. A tick is not: another one follows.
    """

    act: Callable[[ScenarioWorld, Boundary], object]
    retried: bool = True


def uploaded(name: str, document: object = SMALL) -> Step:
    return Step(act=lambda world, boundary: _launched(world, boundary, world.dropped(name, document)))


def crashed_with_two(name: str, document: object) -> Step:
    """The event of a file with a matrix arrives, and its process dies when one run has its job, and one only its record."""

    def act(world: ScenarioWorld, _: Boundary) -> None:
        dies = At("write runs", after=only_at(3, raising(Killed("crash"))))
        with suppress(Killed):
            _launched(world, dies, world.dropped(name, document))

    return Step(act=act, retried=False)


def overwritten(name: str, document: object) -> Step:
    """The file gets another content; the event of that does not arrive."""

    def act(world: ScenarioWorld, _: Boundary) -> None:
        world.objects.write(INBOX, f"requests/{name}.json", json.dumps(document).encode(), if_generation=None)

    return Step(act=act, retried=False)


def policy_set(request_rules: RequestRules) -> Step:
    return Step(act=lambda world, _: setattr(world, "request_rules", request_rules), retried=False)


def saved(name: str, save: int) -> Step:
    """The file is saved for the nth time; no event arrives yet."""
    return Step(act=lambda world, _: world.dropped(name, SMALL, save), retried=False)


def uploaded_again(name: str, save: int) -> Step:
    """The event of the nth save arrives."""
    return Step(act=lambda world, boundary: _launched(world, boundary, world.dropped(name, SMALL, save)))


def published(key: str, document: object = SMALL, message_id: str = "1") -> Step:
    data = base64.b64encode(json.dumps(document).encode()).decode()
    message = {
        "data": data,
        "messageId": message_id,
        "publishTime": START.isoformat(),
        "attributes": {"idempotency_key": key},
    }
    return Step(act=lambda world, boundary: _launched(world, boundary, world.published(message)))


def _launched(world: ScenarioWorld, boundary: Boundary, incoming: IncomingDocument) -> object:
    return list(take_and_admit(world.services(boundary), incoming))


def becomes(number: int, state: JobState) -> Step:
    return Step(act=lambda world, _: world.jobs.become(world.job(number).name, state), retried=False)


def trained(number: int, accuracy: float = 0.5) -> Step:
    def act(world: ScenarioWorld, _: Boundary) -> None:
        job = world.job(number)
        world.export(job.output_uri, accuracy)
        world.jobs.become(job.name, JobState.SUCCEEDED)

    return Step(act=act, retried=False)


def scored(number: int, **scores: float) -> Step:
    """The nth job, which scores models, succeeds; `scores`: the accuracy of each model."""

    def act(world: ScenarioWorld, _: Boundary) -> None:
        job = world.job(number)
        world.score(job, **scores)
        world.jobs.become(job.name, JobState.SUCCEEDED)

    return Step(act=act, retried=False)


def study_finished(number: int) -> Step:
    """Both trials of the nth job succeed, each with a model."""

    def act(world: ScenarioWorld, _: Boundary) -> None:
        job = world.job(number)
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
            world.export(f"{job.output_uri}/{trial.id}", 0.5)
        world.jobs.become(job.name, JobState.SUCCEEDED, trials=trials)

    return Step(act=act, retried=False)


def logged(number: int) -> Step:
    """The sink delivers the service's log entry about the nth job: its end, or its start."""

    def act(world: ScenarioWorld, boundary: Boundary) -> object:
        job = world.job(number)
        hint = world.hint(job, tells_end=job.state in END_OF)
        return list(complete_and_admit(world.services(boundary), hint))

    return Step(act=act)


def finished(number: int, accuracy: float = 0.5) -> tuple[Step, Step]:
    """The nth job succeeds, and its log entry is delivered."""
    return trained(number, accuracy), logged(number)


def succeeded(name: str, document: object, number: int, accuracy: float = 0.5) -> tuple[Step, ...]:
    """The request is uploaded, and its job, the nth, succeeds."""
    return uploaded(name, document), *finished(number, accuracy)


def set_full(is_full: bool) -> Step:
    return Step(act=lambda world, _: setattr(world.room, "places", 0 if is_full else None), retried=False)


def set_denied(is_denied: bool) -> Step:
    """The service refuses the deployment itself, or does so no longer."""
    regions = {REGION} if is_denied else set[str]()
    return Step(act=lambda world, _: setattr(world.room, "denied", regions), retried=False)


def too_fast(times: int) -> Step:
    return Step(act=lambda world, _: setattr(world.room, "too_fast", times), retried=False)


def stocked_out(number: int) -> Step:
    """The nth job ends before it ran, for lack of capacity."""

    def act(world: ScenarioWorld, _: Boundary) -> None:
        world.jobs.become(world.job(number).name, JobState.FAILED, error=NO_CAPACITY, ran=False)

    return Step(act=act, retried=False)


def cancels_late() -> Step:
    """From now on a cancelled job continues, until another step ends it."""
    return Step(act=lambda world, _: setattr(world.jobs, "cancels_late", True), retried=False)


def cancelled_late(number: int) -> Step:
    """The cancellation of the nth job, which must have been requested, takes effect; unless the job has ended."""

    def act(world: ScenarioWorld, boundary: Boundary) -> None:
        name = world.job(number).name
        if name not in world.jobs.asked_to_cancel:  # the disrupted pass did not get there: the next one does
            _ticked(world, Boundary())
        assert name in world.jobs.asked_to_cancel
        if world.jobs.read(name).state not in END_OF:
            world.jobs.become(name, JobState.CANCELLED, ran=False)

    return Step(act=act, retried=False)


def lost(number: int) -> Step:
    """The nth job ends after its start, by an error of the service."""
    error = Failure(code=13, message="Internal error occurred. Please retry in a few minutes.")
    return Step(
        act=lambda world, _: world.jobs.become(world.job(number).name, JobState.FAILED, error=error),
        retried=False,
    )


def deleted(number: int) -> Step:
    return Step(act=lambda world, _: world.jobs.remove(world.job(number).name), retried=False)


def waited(seconds: float) -> Step:
    return Step(act=lambda world, _: world.wait(seconds), retried=False)


def rule_dropped(document: object) -> Step:
    return Step(act=lambda world, boundary: world.deliver_rule(world.put_rule_once(document), boundary))


def data_arrived(name: str, content: bytes = b"1") -> Step:
    """A user writes an object, once, and its event is delivered."""

    def act(world: ScenarioWorld, boundary: Boundary) -> object:
        return world.crossing_log(boundary).append(world.put_data_once(name, content))

    return Step(act=act)


def data_deleted(name: str) -> Step:
    return Step(act=lambda world, _: world.objects.delete(DATA, name), retried=False)


def fired(key: str) -> Step:
    return Step(act=lambda world, boundary: world.order({"fire": {"rule": "cassava"}}, key, boundary))


def pushed(digit: str) -> Step:
    """Artifact Registry publishes a push of that digest, each time with the same message."""
    return Step(act=lambda world, boundary: world.signal(world.pushed(digit, message_id=digit), boundary))


def noticed(number: int) -> Step:
    """The job of the nth run ends; its log entry and then its notices are delivered."""
    return Step(act=lambda world, boundary: world.finish(number, boundary))


def rolled_back(name: str) -> Step:
    return uploaded(name, {"rollback": {"model_name": "cassava"}})


def approved(name: str, **words: object) -> Step:
    """An order about the challenger that waits; if its process crashed before it waited, once it does."""

    def act(world: ScenarioWorld, boundary: Boundary) -> object:
        world.await_challenger(name)
        order = {"approve": {"model_name": "cassava", **words}}
        return _launched(world, boundary, world.dropped(name, order))

    return Step(act=act)


def _ticked(world: ScenarioWorld, boundary: Boundary) -> None:
    world.reconcile(boundary)
    world.tick(boundary)


def cancelled(number: int) -> Step:
    """An order to cancel the nth run, counted in the order of the requests."""

    def act(world: ScenarioWorld, boundary: Boundary) -> object:
        order = {"cancel": {"run": world.records()[number].run_id}}
        return _launched(world, boundary, world.dropped(f"cancel-{number}", order))

    return Step(act=act)


def cancelled_group(number: int) -> Step:
    """The same for all runs of its group."""

    def act(world: ScenarioWorld, boundary: Boundary) -> object:
        group = present(world.records()[number].source.group)
        order = world.dropped(f"cancel-{number}", {"cancel": {"run": group.id}})
        return _launched(world, boundary, order)

    return Step(act=act)


TICK = Step(act=_ticked, retried=False)


def later(seconds: float) -> tuple[Step, Step]:
    """The time passes, and then comes a tick."""
    return waited(seconds), TICK


RULE_REMOVED = Step(act=lambda world, _: world.remove_rule(), retried=False)
