"""What an inspection says: one value for every thing that it found."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is. Only ERROR changes the exit status."""

    ERROR = "error"
    WARNING = "warning"
    UNKNOWN = "unknown"  # the source does not say; the smoke run may
    OK = "ok"


class Subject(StrEnum):
    """What a check is about; each has one room in `trainmaster.inspect.checks`, or is said by the smoke run."""

    SOURCE = "source"
    KERAS = "keras"
    METRIC = "metric"
    PARAMETERS = "parameters"
    SAVING = "saving"
    MODEL_DIR = "model-dir"
    STRATEGY = "strategy"
    ROLES = "roles"
    CHECKPOINTS = "checkpoints"
    SMOKE = "smoke"


@dataclass(frozen=True, kw_only=True)
class Place:
    """A line of a file as the user named it; `line` counts from 1, None stands for the whole file."""

    path: str
    line: int | None = None

    def __str__(self) -> str:
        return self.path if self.line is None else f"{self.path}:{self.line}"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """`cost` says what it takes to leave it so, `repair` what to change; both are empty where all is well."""

    level: Level
    subject: Subject
    found: str
    place: Place | None = None
    cost: str = ""
    repair: str = ""


def fine(subject: Subject, found: str, place: Place | None = None) -> Finding:
    return Finding(level=Level.OK, subject=subject, found=found, place=place)


def unknown(subject: Subject, found: str, place: Place | None = None, *, repair: str = "") -> Finding:
    """What the source alone does not tell; `found` says why."""
    return Finding(
        level=Level.UNKNOWN,
        subject=subject,
        found=f"Could not tell {found}",
        place=place,
        repair=repair or "A smoke run tells: add `--smoke`, and the program's arguments behind `--`.",
    )


def exit_status(findings: Sequence[Finding]) -> int:
    return int(any(finding.level is Level.ERROR for finding in findings))
