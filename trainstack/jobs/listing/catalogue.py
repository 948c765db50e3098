"""An in-memory index of the jobs of one kind, so that no look-up by id or label scans them all."""

import hashlib
from collections.abc import Iterable, Iterator, Reversible
from typing import Generic, TypeVar

from trainstack.errors import InvalidArgumentError
from trainstack.jobs.listing.filters import parse_filter
from trainstack.jobs.resource.job import VertexJob

DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE = 100, 1000

AnyJob = TypeVar("AnyJob", bound=VertexJob)
Label = tuple[str, str]


class Catalogue(Generic[AnyJob]):
    """Jobs by id, in order of creation. A job's labels never change: the service has no call for that."""

    def __init__(self, jobs: Iterable[AnyJob]) -> None:
        self._jobs: dict[str, AnyJob] = {}
        self._labelled: dict[Label, dict[str, None]] = {}
        for job in jobs:
            self.put(job)

    def __iter__(self) -> Iterator[AnyJob]:
        return iter(self._jobs.values())

    def get(self, job_id: str) -> AnyJob | None:
        return self._jobs.get(job_id)

    def put(self, job: AnyJob) -> None:
        if job.job_id not in self._jobs:
            for label in job.message.labels.items():
                self._labelled.setdefault(label, {})[job.job_id] = None
        self._jobs[job.job_id] = job

    def pop(self, job_id: str) -> AnyJob | None:
        job = self._jobs.pop(job_id, None)
        for label in job.message.labels.items() if job else ():
            having = self._labelled[label]
            del having[job_id]
            if not having:
                del self._labelled[label]
        return job

    def having(self, label: Label | None) -> Reversible[AnyJob]:
        """The jobs with that label, oldest first; all jobs for None."""
        if label is None:
            return self._jobs.values()
        return [self._jobs[job_id] for job_id in self._labelled.get(label, ())]

    def page(self, parent: str, *, filter_: str, size: int, token: str) -> tuple[list[AnyJob], str]:
        """One page of a parent's jobs, newest first, without those of trials, and the next page's token.

        The token is empty after the last page; it is tied to the filter.

        Raises:
            ApiError: INVALID_ARGUMENT for an invalid filter, size or token.
        """
        wanted = parse_filter(filter_)
        if size < 0:
            raise InvalidArgumentError(f"page_size: must not be negative, found {size}.")
        size = min(size or DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE)
        digest = hashlib.sha256(filter_.encode()).hexdigest()[:12]
        after = token.removesuffix(f"-{digest}")
        page_jobs: list[AnyJob] = []
        for job in reversed(self.having(wanted.label)):
            if after:
                after = "" if job.job_id == after else after
            elif job.trial is None and job.parent == parent and wanted.matches(job.message):
                if len(page_jobs) == size:
                    return page_jobs, f"{page_jobs[-1].job_id}-{digest}"
                page_jobs.append(job)
        if after:
            raise InvalidArgumentError(f"page_token {token!r} does not belong to this list and filter.")
        return page_jobs, ""
