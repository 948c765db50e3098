"""The jobs of one kind in memory, for look-ups by id and for lists."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from trainstack.jobs.listing.filters import parse_filter
from trainstack.jobs.resource.errors import ApiError, Status
from trainstack.jobs.resource.job import VertexJob

DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE = 100, 1000

AnyJob = TypeVar("AnyJob", bound=VertexJob)


class Catalogue(Generic[AnyJob]):
    """Jobs by id, in order of creation."""

    def __init__(self, jobs: Iterable[AnyJob]) -> None:
        self._jobs = {job.job_id: job for job in jobs}

    def __iter__(self) -> Iterator[AnyJob]:
        return iter(self._jobs.values())

    def get(self, job_id: str) -> AnyJob | None:
        return self._jobs.get(job_id)

    def put(self, job: AnyJob) -> None:
        self._jobs[job.job_id] = job

    def remove(self, job_id: str) -> None:
        """Safe to call twice."""
        self._jobs.pop(job_id, None)

    def page(self, parent: str, *, filter_: str, size: int, token: str) -> tuple[list[AnyJob], str]:
        """One page of a parent's jobs, newest first, without those of trials, and the next page's token.

        The token is empty after the last page; it is tied to the filter.

        Raises:
            ApiError: INVALID_ARGUMENT for an invalid filter, size or token.
        """
        matches = parse_filter(filter_)
        if size < 0:
            raise ApiError(Status.INVALID_ARGUMENT, f"page_size: must not be negative, found {size}.")
        size = min(size or DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE)
        digest = hashlib.sha256(filter_.encode()).hexdigest()[:12]
        after = token.removesuffix(f"-{digest}")
        page_jobs: list[AnyJob] = []
        for job in reversed(self._jobs.values()):
            if after:
                after = "" if job.job_id == after else after
            elif job.trial is None and job.parent == parent and matches(job):
                if len(page_jobs) == size:
                    return page_jobs, f"{page_jobs[-1].job_id}-{digest}"
                page_jobs.append(job)
        if after:
            raise ApiError(
                Status.INVALID_ARGUMENT, f"page_token {token!r} does not belong to this list and filter."
            )
        return page_jobs, ""
