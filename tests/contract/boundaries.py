"""Boundaries that run a function at the calls of one name, and buckets that count what they list."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from tests.contract.world import PROJECT, Boundary, Killed, World
from tests.memory import MemoryJobs, MemoryObjects
from trainmaster.orchestrator.adapters.vertex import PAGE_SIZE
from trainmaster.orchestrator.core.job_names import JobKind, job_region, location_region
from trainmaster.orchestrator.core.requests.submission import Submission
from trainmaster.orchestrator.core.runs.job import Job
from trainmaster.orchestrator.ports.objects import Listed

_Answer = TypeVar("_Answer")


def nothing() -> None:
    """What happens by default."""


class At(Boundary):
    """`before` and `after` happen at each call of that name; what they raise is raised there."""

    def __init__(
        self, name: str, *, before: Callable[[], object] = nothing, after: Callable[[], object] = nothing
    ) -> None:
        super().__init__()
        self.name = name
        self.before = before
        self.after = after

    def cross(self, name: str, call: Callable[[], _Answer]) -> _Answer:
        if name != self.name:
            return super().cross(name, call)
        self.before()
        answer = super().cross(name, call)
        self.after()
        return answer


def raising(error: BaseException) -> Callable[[], object]:
    def raised() -> None:
        raise error

    return raised


def dies_before(name: str) -> Boundary:
    return At(name, before=raising(Killed(f"before {name}")))


def dies_after(name: str) -> Boundary:
    return At(name, after=raising(Killed(f"after {name}")))


def only_at(nth: int, act: Callable[[], object]) -> Callable[[], object]:
    """`act`, but only at the nth call."""
    calls = itertools.count(1)
    return lambda: act() if next(calls) == nth else None


class CountedObjects(MemoryObjects):
    """Counts the objects that listings gave."""

    listed = 0

    def listing(self, bucket: str, prefix: str, after: str = "") -> Iterator[Listed]:
        for each in super().listing(bucket, prefix, after):
            self.listed += 1
            yield each


class CountedJobs(MemoryJobs):
    """Counts calls by region and method, as Vertex AI's quotas do: each page of a list is one."""

    def __init__(self, world: World) -> None:
        super().__init__(world.clock, project=PROJECT)
        self.calls: Counter[tuple[str, str]] = Counter()

    def count(self, region: str, method: str, calls: int = 1) -> None:
        self.calls[region, method] += calls

    def submit(self, submission: Submission) -> Job:
        self.count(location_region(submission.parent), "create")
        return super().submit(submission)

    def of_run(self, run_id: str, kind: JobKind, regions: Sequence[str]) -> Sequence[Job]:
        for region in regions:
            self.count(region, "list")
        return super().of_run(run_id, kind, regions)

    def active(self, kind: JobKind, region: str) -> Sequence[Job]:
        jobs = super().active(kind, region)
        self.count(region, "list", max(1, -(-len(jobs) // PAGE_SIZE)))
        return jobs

    def read(self, name: str) -> Job:
        self.count(job_region(name), "get")
        return super().read(name)

    def cancel(self, name: str) -> None:
        self.count(job_region(name), "cancel")
        super().cancel(name)
