"""A JobService with a will of its own: it refuses, defers, answers nothing, and shows new jobs late."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from random import Random
from typing import Any

from tests.contract.rooms import full, too_fast
from tests.contract.world import ELSEWHERE, PROJECT, REGION
from trainmaster.orchestrator.adapters.memory import ManualClock, MemoryJobs, MemoryNotices
from trainmaster.orchestrator.core.errors import (
    ActAsDenied,
    SubmissionDeferred,
    SubmissionRefused,
    SubmissionUnknown,
)
from trainmaster.orchestrator.core.names import JobKind, location_region
from trainmaster.orchestrator.core.notices.notice import Notice
from trainmaster.orchestrator.core.requests.submission import Submission
from trainmaster.orchestrator.core.runs.job import Job

REGIONS = (REGION, ELSEWHERE)

SHOWN_AFTER = timedelta(seconds=20)
"""How late a listing may show a new job at most; a bound of this simulation, Google states none."""


ROOM_OF_A_CLASS = 15
"""So many jobs on one kind of machine may go on at once in a region; more find no quota."""
DEFERRALS: Mapping[str, Callable[[], SubmissionDeferred]] = {
    "no room": full,
    # With other words a 503 promises nothing, and the adapter tells of it as of a lost answer.
    "unavailable": lambda: SubmissionDeferred(503, "Resources are insufficient in region: us-central1."),
    "too fast": too_fast,
    "no grant": lambda: ActAsDenied(
        400, "You do not have permission to act as service_account: a@b.c", "a@b.c"
    ),
}
ODD_ANSWERS: Mapping[str, float] = {
    "no room": 0.02,
    "unavailable": 0.01,
    "too fast": 0.01,
    "no grant": 0.003,
    "refused": 0.003,
    "request lost": 0.01,
    "answer lost": 0.01,
}
ANSWERS: Mapping[str, float] = {**ODD_ANSWERS, "created": 1 - sum(ODD_ANSWERS.values())}
"""How often the service answers a submission so."""


def deferred(answer: str) -> SubmissionDeferred:
    """The error of that name, a new one."""
    return DEFERRALS[answer]()


class LivingJobs(MemoryJobs):
    """Keeps account of the jobs that each run was given, and tells of each new one."""

    def __init__(
        self,
        clock: ManualClock,
        random: Random,
        created: Callable[[Job], None],
        asked: Callable[[Submission], None],
    ) -> None:
        super().__init__(clock, project=PROJECT)
        self._now = clock.now
        self._random = random
        self._told_of = created
        self._asked = asked
        self._class_of: dict[str, str] = {}
        self.submitted: Counter[str] = Counter()
        self.refused: set[str] = set()
        self.answers: Counter[str] = Counter()

    def submit(self, submission: Submission) -> Job:
        (answer,) = self._random.choices(list(ANSWERS), list(ANSWERS.values()))
        kind = _kind_of(submission)
        if answer not in DEFERRALS and self._going_on(kind) >= ROOM_OF_A_CLASS:
            answer = "no room"
        self.answers[answer] += 1
        if answer in DEFERRALS:
            raise deferred(answer)
        if answer == "refused":
            self.refused.add(submission.run_id)
            raise SubmissionRefused(400, "the service does not like it")
        if answer == "request lost":
            raise SubmissionUnknown("the request was lost")
        self._asked(submission)
        job = super().submit(submission)
        self._class_of[job.name] = kind
        self.submitted[submission.run_id] += 1
        self._told_of(job)
        if answer == "answer lost":
            raise SubmissionUnknown("the answer was lost")
        return job

    def forge(self, submission: Submission) -> Job:
        """A job that somebody else created, who may write any label."""
        return super().submit(submission)

    def of_run(self, run_id: str, kind: JobKind, regions: Sequence[str]) -> Sequence[Job]:
        return [job for job in super().of_run(run_id, kind, regions) if self._shown(job)]

    def given_to(self, run_id: str) -> Sequence[Job]:
        """Every job labelled with the run, shown or not."""
        return [job for kind in JobKind for job in super(LivingJobs, self).of_run(run_id, kind, REGIONS)]

    def _going_on(self, kind: str) -> int:
        return sum(self._class_of.get(job.name) == kind for job in self.going())

    def _shown(self, job: Job) -> bool:
        late_s = int(job.name[-3:]) * 7 % (int(SHOWN_AFTER.total_seconds()) + 1)
        return job.create_time is None or self._now() - job.create_time >= timedelta(seconds=late_s)


def _kind_of(submission: Submission) -> str:
    """Which quota the job needs."""
    body: Any = submission.body
    machine = body["jobSpec"]["workerPoolSpecs"][0]["machineSpec"]
    return f"{location_region(submission.parent)} {machine.get('acceleratorType', 'cpu')}"


class LivingNotices(MemoryNotices):
    """Keeps the ids of what was published, and passes each message on."""

    def __init__(self, published: Callable[[Notice], None]) -> None:
        super().__init__()
        self._pass_on = published
        self.ids: Counter[str] = Counter()

    def publish(self, notice: Notice) -> None:
        self.ids[notice.id] += 1
        self._pass_on(notice)
