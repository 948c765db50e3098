"""Pages of a list of jobs: newest first, filtered, each page's token tied to its filter."""

import hashlib

from trainmaster.local.jobs.listing.catalogue import AnyJob, Catalogue
from trainmaster.local.jobs.listing.filters import parse_filter
from trainmaster.local.jobs.resource.errors import ApiError, Status

DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE = 100, 1000


def page_of(
    jobs: Catalogue[AnyJob], parent: str, *, filter_: str, page_size: int, page_token: str
) -> tuple[list[AnyJob], str]:
    """One page of the jobs of `parent`, those of trials left out, and the token of the next page; empty after the last.

    Raises:
        ApiError: INVALID_ARGUMENT for a filter, size or token that cannot be.
    """
    wanted = parse_filter(filter_)
    if page_size < 0:
        raise ApiError(Status.INVALID_ARGUMENT, f"page_size: not negative, found {page_size}.")
    size = min(page_size or DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE)
    after = _job_before_page(page_token, filter_)
    found: list[AnyJob] = []
    for job in reversed(jobs.having(wanted.label)):
        if after is not None:
            after = None if job.job_id == after else after
        elif job.trial is None and job.parent == parent and wanted.matches(job):
            if len(found) == size:
                return found, f"{found[-1].job_id}-{_digest(filter_)}"
            found.append(job)
    if after is not None:
        raise _unknown_token(page_token)
    return found, ""


def _digest(filter_: str) -> str:
    return hashlib.sha256(filter_.encode()).hexdigest()[:12]


def _job_before_page(token: str, filter_: str) -> str | None:
    if not token:
        return None
    job_id, _, digest = token.partition("-")
    if not job_id.isdigit() or digest != _digest(filter_):
        raise _unknown_token(token)
    return job_id


def _unknown_token(token: str) -> ApiError:
    return ApiError(
        Status.INVALID_ARGUMENT, f"page_token {token!r} belongs to no page of this list and filter."
    )
