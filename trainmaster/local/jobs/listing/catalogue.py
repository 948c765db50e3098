"""The jobs of one kind in memory, so that neither a look-up by id nor one by label reads them all."""

from collections.abc import Iterable, Iterator, Reversible
from typing import Generic, TypeVar

from trainmaster.local.jobs.resource.job import Job

AnyJob = TypeVar("AnyJob", bound=Job)
Label = tuple[str, str]


class Catalogue(Generic[AnyJob]):
    """Jobs by id, in the order of their arrival. A job's labels never change: the service has no call for that."""

    def __init__(self, jobs: Iterable[AnyJob]) -> None:
        self._jobs: dict[str, AnyJob] = {}
        self._labelled: dict[Label, dict[str, None]] = {}
        for job in jobs:
            self.put(job)

    def __iter__(self) -> Iterator[AnyJob]:
        return iter(self._jobs.values())

    def get(self, job_id: str) -> AnyJob | None:
        """The job as it was put last."""
        return self._jobs.get(job_id)

    def put(self, job: AnyJob) -> None:
        """Keep the job in its place among the others."""
        if job.job_id not in self._jobs:
            for label in job.message.labels.items():
                self._labelled.setdefault(label, {})[job.job_id] = None
        self._jobs[job.job_id] = job

    def pop(self, job_id: str) -> AnyJob | None:
        """Forget a job; which it was."""
        job = self._jobs.pop(job_id, None)
        for label in job.message.labels.items() if job else ():
            having = self._labelled[label]
            del having[job_id]
            if not having:
                del self._labelled[label]
        return job

    def having(self, label: Label | None) -> Reversible[AnyJob]:
        """The jobs with that label, oldest first; every job for None."""
        if label is None:
            return self._jobs.values()
        return [self._jobs[job_id] for job_id in self._labelled.get(label, ())]
