"""The result of a simulation, in numbers."""

from collections import Counter
from dataclasses import dataclass, field, fields

STORAGE = ("read ", "describe ", "write ", "delete ", "list ")
_NOT_STORAGE = frozenset({"read job", "list jobs"})


@dataclass(kw_only=True)
class Tally:
    """Counts by kind of event, error, disruption or call; `bugs` are unexpected errors."""

    deliveries: Counter[str] = field(default_factory=Counter)
    redelivered: Counter[str] = field(default_factory=Counter)
    duplicated: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    disruptions: Counter[str] = field(default_factory=Counter)
    operations: Counter[str] = field(default_factory=Counter)
    submissions: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    waits: Counter[str] = field(default_factory=Counter)
    candidates: Counter[str] = field(default_factory=Counter)
    stockouts: int = 0
    given_up: int = 0
    """Those of them that had not started by their deadline."""
    kept: int = 0
    """Jobs that started while they were being cancelled for that, and were kept."""
    retries: int = 0
    refused_by_caps: int = 0
    freed_by_ends: int = 0
    """Starts that the cap on cost allows only because runs before them ended, and cost less than their maximum."""
    requests: int = 0
    runs: int = 0
    jobs: int = 0
    duplicate_jobs: int = 0
    lost: int = 0
    unfinished: int = 0
    bugs: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)

    @property
    def events(self) -> int:
        return self.deliveries.total()

    @property
    def storage_operations(self) -> int:
        return sum(
            count
            for name, count in self.operations.items()
            if name.startswith(STORAGE) and name not in _NOT_STORAGE
        )

    def add(self, other: "Tally") -> None:
        """Add another simulation's numbers."""
        for each in fields(self):
            mine, theirs = getattr(self, each.name), getattr(other, each.name)
            if isinstance(mine, Counter):
                mine.update(theirs)
            else:
                setattr(self, each.name, mine + theirs)
