"""A job service that refuses and defers submissions, loses responses, and lists new jobs late."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from random import Random
from typing import Any

from tests.contract.rooms import full, too_fast
from tests.contract.world import ELSEWHERE, PROJECT, REGION
from tests.memory import ManualClock, MemoryJobs, MemoryNotices
from trainmaster.orchestrator.core.admission.candidates import deployment_class
from trainmaster.orchestrator.core.errors import (
    ActAsDenied,
    DeploymentRefused,
    SubmissionDeferred,
    SubmissionRefused,
    SubmissionUnknown,
)
from trainmaster.orchestrator.core.job_names import JobKind, location_region
from trainmaster.orchestrator.core.notices.notice import Notice
from trainmaster.orchestrator.core.requests.submission import Submission
from trainmaster.orchestrator.core.runs.job import Job

REGIONS = (REGION, ELSEWHERE)

LISTED_AFTER = timedelta(seconds=20)
"""Until then a listing may lack a new job. Assumed: Google states no bound."""


JOBS_PER_QUOTA = 15
"""Max jobs at once per accelerator type and region; more exceed the quota."""
DEFERRALS: Mapping[str, Callable[[], SubmissionDeferred]] = {
    "no room": full,
    # The adapter takes a 503 with any other message for a lost response.
    "unavailable": lambda: SubmissionDeferred(503, "Resources are insufficient in region: us-central1."),
    "too fast": too_fast,
    "no grant": lambda: ActAsDenied(
        400, "You do not have permission to act as service_account: a@b.c", "a@b.c"
    ),
    "no right": lambda: DeploymentRefused(
        403, "Permission denied.", "grant it", lacks=deployment_class(REGION, JobKind.CUSTOM)
    ),
}
ODD_ANSWERS: Mapping[str, float] = {
    "no room": 0.02,
    "unavailable": 0.01,
    "too fast": 0.01,
    "no grant": 0.003,
    "no right": 0.003,
    "refused": 0.003,
    "request lost": 0.01,
    "answer lost": 0.01,
}
ANSWERS: Mapping[str, float] = {**ODD_ANSWERS, "created": 1 - sum(ODD_ANSWERS.values())}
"""The probability of each answer to a submission."""


class UnreliableJobs(MemoryJobs):
    """Counts the jobs created for each run, and reports each new one, and each cancellation, which may take effect later."""

    def __init__(
        self,
        clock: ManualClock,
        random: Random,
        on_created: Callable[[Job], None],
        before_creation: Callable[[Submission], None],
        cancels_later: Callable[[str], bool],
    ) -> None:
        super().__init__(clock, project=PROJECT)
        self._now = clock.now
        self._random = random
        self._on_created = on_created
        self._before_creation = before_creation
        self._cancels_later = cancels_later
        self._class_of: dict[str, str] = {}
        self.submitted: Counter[str] = Counter()
        self.refused: set[str] = set()
        self.answers: Counter[str] = Counter()

    def submit(self, submission: Submission) -> Job:
        (answer,) = self._random.choices(list(ANSWERS), list(ANSWERS.values()))
        kind = _quota_of(submission)
        if answer not in DEFERRALS and self._running(kind) >= JOBS_PER_QUOTA:
            answer = "no room"
        self.answers[answer] += 1
        if answer in DEFERRALS:
            refusal = DEFERRALS[answer]()
            raise refusal
        if answer == "refused":
            self.refused.add(submission.run_id)
            raise SubmissionRefused(400, "the service refused the request")
        if answer == "request lost":
            raise SubmissionUnknown("the request was lost")
        self._before_creation(submission)
        job = super().submit(submission)
        self._class_of[job.name] = kind
        self.submitted[submission.run_id] += 1
        self._on_created(job)
        if answer == "answer lost":
            raise SubmissionUnknown("the response was lost")
        return job

    def cancel(self, name: str) -> None:
        self.cancels_late = self._cancels_later(name)
        super().cancel(name)

    def forge(self, submission: Submission) -> Job:
        """A job created by another client, which may set any label."""
        return super().submit(submission)

    def of_run(self, run_id: str, kind: JobKind, regions: Sequence[str]) -> Sequence[Job]:
        return [job for job in super().of_run(run_id, kind, regions) if self._is_listed(job)]

    def active(self, kind: JobKind, region: str) -> Sequence[Job]:
        return [job for job in super().active(kind, region) if self._is_listed(job)]

    def all_of_run(self, run_id: str) -> Sequence[Job]:
        """Every job labelled with the run, listed yet or not."""
        return [job for kind in JobKind for job in super(UnreliableJobs, self).of_run(run_id, kind, REGIONS)]

    def _running(self, kind: str) -> int:
        return sum(self._class_of.get(job.name) == kind for job in self.going())

    def _is_listed(self, job: Job) -> bool:
        late_s = int(job.name[-3:]) * 7 % (int(LISTED_AFTER.total_seconds()) + 1)
        return job.create_time is None or self._now() - job.create_time >= timedelta(seconds=late_s)


def _quota_of(submission: Submission) -> str:
    """The quota that the job needs."""
    body: Any = submission.body
    machine = body["jobSpec"]["workerPoolSpecs"][0]["machineSpec"]
    return f"{location_region(submission.parent)} {machine.get('acceleratorType', 'cpu')}"


class RecordedNotices(MemoryNotices):
    """Records the ids of published notices, and forwards each notice."""

    def __init__(self, on_published: Callable[[Notice], None]) -> None:
        super().__init__()
        self._on_published = on_published
        self.ids: Counter[str] = Counter()

    def publish(self, notice: Notice) -> None:
        self.ids[notice.id] += 1
        self._on_published(notice)
