"""Whether a job may be had now: what the regions' quota and stockouts leave of it."""

from collections import defaultdict
from collections.abc import Iterable
from fnmatch import fnmatchcase

from trainmaster.local.jobs.capacity.quota import Limit, Quota, Stockout, held, is_spot, metric_of, uses
from trainmaster.local.jobs.resource.errors import ApiError, Status
from trainmaster.local.jobs.resource.job import Job


class Supply:
    """What one stack's regions have. How often a stockout struck is forgotten when the stack ends."""

    def __init__(self, quota: Quota | None = None) -> None:
        self.quota = quota or Quota()
        self._struck: dict[int, int] = defaultdict(int)

    def put(self, quota: Quota) -> None:
        """Have this instead from now on. Jobs that were accepted stay; every stockout is counted anew."""
        self.quota = quota
        self._struck.clear()

    def refuse_over_quota(self, job: Job, *, going: Iterable[Job]) -> None:
        """Refuse a job for which those that have not ended, `going`, leave too little.

        Raises:
            ApiError: RESOURCE_EXHAUSTED, with every metric that would be exceeded.
        """
        region, spot = job.location, is_spot(job.spec)
        here = [other for other in going if other.location == region and is_spot(other.spec) == spot]
        exceeded = [
            metric_of(limit)
            for limit in self.quota.limits
            if limit.region == region and limit.spot == spot and _exceeds(limit, job, here)
        ]
        if exceeded:
            metrics = ", ".join(dict.fromkeys(exceeded))
            raise ApiError(
                Status.RESOURCE_EXHAUSTED, f"The following quota metrics exceed quota limits: {metrics}"
            )

    def is_out_of_stock(self, job: Job) -> bool:
        """Whether this job finds no machines; asked once for each job, for it is counted."""
        for number, stockout in enumerate(self.quota.stockouts):
            left = stockout.times is None or self._struck[number] < stockout.times
            if left and _concerns(stockout, job):
                self._struck[number] += 1
                return True
        return False


def _exceeds(limit: Limit, job: Job, others: Iterable[Job]) -> bool:
    asked = job.copies * held(job.spec, limit.resource)
    return asked > 0 and asked + sum(held(other.spec, limit.resource) for other in others) > limit.most


def _concerns(stockout: Stockout, job: Job) -> bool:
    return (
        fnmatchcase(job.location, stockout.region)
        and stockout.spot in (None, is_spot(job.spec))
        and uses(job.spec, stockout.resource)
    )
