"""Job services that lack quota or answer with errors, and helpers for tests of admission."""

import itertools
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.contract.retraining import SMALL
from tests.contract.schemas import RECORD
from tests.contract.world import LEDGER, REGION, Killed, World, request_rules_with
from trainmaster.orchestrator.core.admission.candidates import deployment_class
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.errors import (
    DeploymentRefused,
    SubmissionDeferred,
    SubmissionUnknown,
    TrainmasterError,
)
from trainmaster.orchestrator.core.job_names import location_region
from trainmaster.orchestrator.core.names import RUN_LABEL
from trainmaster.orchestrator.core.policy.admission import Admission, Limit
from trainmaster.orchestrator.core.requests.incoming import IncomingDocument
from trainmaster.orchestrator.core.requests.submission import Submission
from trainmaster.orchestrator.core.runs.job import Failure, Job

TWO_REGIONS = request_rules_with()
GPU = {
    "cluster": {"chief": {"machine": "n1-standard-4", "accelerator": {"type": "NVIDIA_TESLA_T4", "count": 1}}}
}
NO_CAPACITY = Failure(
    code=8, message=f"Resources are insufficient in region: {REGION}. Please try a different region."
)
"""The error of a job that ended before it ran because the service found no machines."""


REPAIR = "gcloud projects add-iam-policy-binding my-project"


# A new error each time: one that is raised again keeps its old traceback.
def full() -> SubmissionDeferred:
    return SubmissionDeferred(
        429,
        "The following quota metrics exceed quota limits: aiplatform.googleapis.com/custom_model_training_cpus",
    )


def too_fast() -> SubmissionDeferred:
    return SubmissionDeferred(
        429, "Quota exceeded for requests per minute per region of aiplatform.googleapis.com"
    )


def refuses(submission: Submission) -> DeploymentRefused:
    """The service refuses every job of that kind and region, whatever it asks for."""
    lacks = deployment_class(location_region(submission.parent), submission.kind)
    return DeploymentRefused(403, "Permission denied.", REPAIR, lacks=lacks)


class Room:
    """A job service that runs at most `places` jobs at once; None: any number. `most` is the maximum reached so far.

    It refuses the deployment in the regions of `denied`, the next `too_fast` requests for their rate, and loses the next request of each run in `loses`.
    """

    def __init__(self, world: World, places: int | None = None) -> None:
        self.world, self.places = world, places
        self.denied: set[str] = set()
        self.too_fast = 0
        self.loses: set[str] = set()
        self.asked: list[str] = []
        self.most = 0
        self._submit = world.jobs.submit
        world.jobs.submit = self.submit  # type: ignore[method-assign]  # the test's service answers instead

    def submit(self, submission: Submission) -> Job:
        self.asked.append(submission.run_id)
        if location_region(submission.parent) in self.denied:
            raise refuses(submission)
        if self.too_fast:
            self.too_fast -= 1
            raise too_fast()
        if self.places is not None and len(going(self.world)) >= self.places:
            raise full()
        if submission.run_id in self.loses:
            self.loses.remove(submission.run_id)
            raise SubmissionUnknown("the connection broke")
        job = self._submit(submission)
        self.most = max(self.most, len(going(self.world)))
        return job


class Answering:
    """A job service that answers submissions with errors, creating the jobs or not, and then works normally.

    `sent` has every submission.
    """

    def __init__(self, world: World, *answers: TrainmasterError, does_it: bool = False) -> None:
        self._jobs, self._submit = world.jobs, world.jobs.submit
        self._answers = list(answers)
        self._does_it = does_it
        self.sent: list[Submission] = []

    def submit(self, submission: Submission) -> Job:
        self.sent.append(submission)
        if not self._answers:
            return self._submit(submission)
        if self._does_it:
            self._submit(submission)
        raise self._answers.pop(0)

    def __getattr__(self, method: str) -> Any:  # the port's
        return getattr(self._jobs, method)


class Stopping(Answering):
    """A job service that the first process never reaches; its submissions are kept."""

    def submit(self, submission: Submission) -> Job:
        self.sent.append(submission)
        raise Killed("paused before its submission")


def stopped_before_submitting(world: World, incoming: IncomingDocument) -> Callable[[], Job]:
    """Pause a process that holds its lease. The returned function makes its submission and nothing else."""
    stopping = Stopping(world)
    with pytest.raises(Killed):
        world.launch(incoming, jobs=stopping)
    return lambda: world.jobs.submit(stopping.sent[0])


_names = (f"n{number}" for number in itertools.count())


def drop(world: World, **changes: Any) -> IncomingDocument:
    world.clock.advance(timedelta(seconds=1))
    return world.drop(json.dumps({**SMALL, **changes}).encode(), f"requests/{next(_names)}.json")


def launched(world: World, **changes: Any) -> str:
    incoming = drop(world, **changes)
    world.launch(incoming)
    return incoming.run_id


def unanswered(world: World, room: Room) -> IncomingDocument:
    """The document of a run whose first submission got no response."""
    incoming = drop(world)
    room.loses = {incoming.run_id}
    with pytest.raises(SubmissionUnknown):
        world.launch(incoming)
    return incoming


def going(world: World) -> list[str]:
    return [job.labels[RUN_LABEL] for job in world.jobs.going()]


def ends(world: World, run_id: str) -> None:
    world.complete(world.hint(world.train(world.record(run_id))))


def places(world: World) -> list[str]:
    return [place.run_id for place in sorted(world.services().queue.places()[0], key=lambda each: each.order)]


def slots(world: World) -> list[str]:
    return [each.name for each in world.objects.listing(LEDGER, "slots/")]


def states(world: World, *run_ids: str) -> list[str]:
    for run_id in run_ids:
        RECORD.validate(encoded(world.record(run_id)))
    return [world.record(run_id).state.value for run_id in run_ids]


def limited(*limits: Limit) -> World:
    return World(request_rules_with(admission=Admission(limits=limits)))
