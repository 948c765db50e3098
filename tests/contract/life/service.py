"""A JobService with a will of its own: it refuses, defers, answers nothing, and shows new jobs late."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from random import Random

from orchestrator.adapters.memory import ManualClock, MemoryJobs, MemoryNotices
from orchestrator.core.errors import SubmissionDeferred, SubmissionRefused, SubmissionUnknown
from orchestrator.core.launch.submission import Submission
from orchestrator.core.names import JobKind
from orchestrator.core.run import Job
from orchestrator.ports import Notice
from tests.contract.world import PROJECT, REGION

REGIONS = (REGION,)

SHOWN_AFTER = timedelta(seconds=20)
"""How late a listing may show a new job at most; a bound of this simulation, Google states none."""


@dataclass(frozen=True, kw_only=True)
class Manners:
    """How often the service answers a submission otherwise than with the job."""

    defers: float = 0.02
    refuses: float = 0.003
    loses_request: float = 0.01
    loses_answer: float = 0.01

    @property
    def answers(self) -> tuple[str, ...]:
        return ("deferred", "refused", "request lost", "answer lost", "created")

    @property
    def shares(self) -> tuple[float, ...]:
        odd = (self.defers, self.refuses, self.loses_request, self.loses_answer)
        return (*odd, 1 - sum(odd))


class LivingJobs(MemoryJobs):
    """Keeps account of the jobs that each run was given, and tells of each new one."""

    def __init__(
        self, clock: ManualClock, random: Random, manners: Manners, created: Callable[[Job], None]
    ) -> None:
        super().__init__(clock, project=PROJECT)
        self._now = clock.now
        self._random = random
        self._manners = manners
        self._told_of = created
        self.submitted: Counter[str] = Counter()
        self.refused: set[str] = set()
        self.answers: Counter[str] = Counter()

    def submit(self, submission: Submission) -> Job:
        (answer,) = self._random.choices(self._manners.answers, self._manners.shares)
        self.answers[answer] += 1
        if answer == "deferred":
            raise SubmissionDeferred(429, "the quota is used up")
        if answer == "refused":
            self.refused.add(submission.run_id)
            raise SubmissionRefused(400, "the service does not like it")
        if answer == "request lost":
            raise SubmissionUnknown("the request was lost")
        job = super().submit(submission)
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

    def _shown(self, job: Job) -> bool:
        late_s = int(job.name[-3:]) * 7 % (int(SHOWN_AFTER.total_seconds()) + 1)
        return job.create_time is None or self._now() - job.create_time >= timedelta(seconds=late_s)


class LivingNotices(MemoryNotices):
    """Keeps the ids of what was published, and passes each message on."""

    def __init__(self, published: Callable[[Notice], None]) -> None:
        super().__init__()
        self._pass_on = published
        self.ids: Counter[str] = Counter()

    def publish(self, notice: Notice) -> None:
        self.ids[notice.id] += 1
        self._pass_on(notice)
