"""Identifies one machine of a job."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, order=True)
class JobReplica:
    """One machine of a job: `pool` and `index` both count from zero."""

    pool: int
    index: int

    @property
    def name(self) -> str:
        """The name in the service's logs and messages: `workerpool0-0`."""
        return f"workerpool{self.pool}-{self.index}"

    @property
    def is_chief(self) -> bool:
        """Whether its exit with 0 is the job's success."""
        return self.pool == 0 and self.index == 0


CHIEF = JobReplica(pool=0, index=0)


def replicas_of(counts: Sequence[int]) -> tuple[JobReplica, ...]:
    """Every replica of pools with these sizes, the chief first. A skipped pool has size 0."""
    return tuple(
        JobReplica(pool=pool, index=index) for pool, count in enumerate(counts) for index in range(count)
    )
