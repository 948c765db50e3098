"""How a replica is kept apart from this machine, whichever way: what starts it, and what is left of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from trainmaster.local.jobs.images.programs import Program


@dataclass(frozen=True, kw_only=True)
class Placement:
    """One start of a replica.

    Attributes:
        program: what it runs.
        service: the variables that the service sets.
        scratch: a new directory of its own.
        name: unique on this machine.
        metrics_dir: where its variables say that its metric file is; empty where it has none.
    """

    program: Program
    service: Mapping[str, str]
    scratch: Path
    name: str
    metrics_dir: str = ""


@dataclass(frozen=True, kw_only=True)
class Start:
    """How a replica's process is started: its command, and its whole environment."""

    argv: list[str]
    env: dict[str, str]


class Isolation(Protocol):
    """One way to run replicas."""

    def start_of(self, placement: Placement) -> Start:
        """How to start a replica; what it needs in its scratch directory is made."""

    def remove(self, names: Sequence[str]) -> None:
        """Remove what replicas of these names left outside their scratch directories."""
