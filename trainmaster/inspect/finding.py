"""The findings of an inspection, as text and as JSON."""

import json
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from enum import StrEnum

WIDTH = 110


class Level(StrEnum):
    """How bad it is, the gravest first. Only ERROR changes the exit status; OK is only for what was seen to its end."""

    ERROR = "error"
    WARNING = "warning"
    NOT_FOLLOWED = "not followed"
    OK = "ok"


class FindingSubject(StrEnum):
    """What a check is about, or the smoke run; it makes the findings about itself."""

    SOURCE = "source"
    ARGUMENTS = "arguments"
    PARAMETERS = "parameters"
    METRIC = "metric"
    MODEL_DIR = "model-dir"
    LOGGING = "logging"
    SMOKE = "smoke"

    def fault(
        self,
        found: str,
        place: "SourceLocation | None" = None,
        *,
        repair: str,
        cost: str = "",
        level: Level = Level.ERROR,
    ) -> "ProgramFinding":
        """A fault to repair; `cost` defaults to the subject's usual one."""
        cost = cost or USUAL_COSTS[self]
        return ProgramFinding(level=level, subject=self, found=found, place=place, cost=cost, repair=repair)

    def fine(self, found: str, place: "SourceLocation | None" = None) -> "ProgramFinding":
        """What was seen to its end, without a fault."""
        return ProgramFinding(level=Level.OK, subject=self, found=found, place=place)

    def not_followed(
        self, found: str, place: "SourceLocation | None" = None, *, repair: str = ""
    ) -> "ProgramFinding":
        """A question that the check left open; `found` begins with `whether` or `how`, and says what was seen."""
        repair = repair or "A smoke run finds out: add --smoke, and arguments for a short run after `--`."
        return ProgramFinding(level=Level.NOT_FOLLOWED, subject=self, found=found, place=place, repair=repair)


USUAL_COSTS = {
    FindingSubject.METRIC: "You pay for every trial, but the study learns nothing from any of them.",
    FindingSubject.PARAMETERS: "Every trial exits with status 2 as soon as it parses its command line, after its machine "
    "has started.",
    FindingSubject.ARGUMENTS: "Every replica ends as soon as it reads its command line, after its machine has started.",
    FindingSubject.MODEL_DIR: "You pay for the training, but its model ends up where nothing looks for it.",
}


class UnusableProgram(Exception):
    """The program cannot be examined with these options; trying again unchanged cannot help.

    `faults` holds every fault found, each a sentence with what was found and the likely repair.
    """

    def __init__(self, *faults: str) -> None:
        self.faults = faults
        super().__init__("\n".join(self.faults))


@dataclass(frozen=True, kw_only=True)
class SourceLocation:
    """A line of a file as the user named it; `line` counts from 1, None stands for the whole file."""

    path: str
    line: int | None = None

    def __str__(self) -> str:
        return self.path if self.line is None else f"{self.path}:{self.line}"


@dataclass(frozen=True, kw_only=True)
class ProgramFinding:
    """`cost` says what it takes to leave it so, `repair` what to change; both are empty where all is well."""

    level: Level
    subject: FindingSubject
    found: str
    place: SourceLocation | None = None
    cost: str = ""
    repair: str = ""


def nearest(word: str, known: Iterable[str]) -> str:
    """` Did you mean 'x'?` with the known word most like `word`, or nothing when none is near."""
    matches = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" Did you mean {matches[0]!r}?" if matches else ""


def some_of(names: Sequence[str]) -> str:
    """The first three, and how many more there are."""
    shown = 3
    more = len(names) - shown
    return ", ".join(names[:shown]) + (f" and {more} more" if more > 0 else "")


def as_text(findings: Sequence[ProgramFinding]) -> str:
    """The gravest first, then a line that counts them."""
    counts = {level: sum(finding.level is level for finding in findings) for level in Level}
    total = ", ".join(_count_text(level, count) for level, count in counts.items() if count)
    return "\n".join([*map(_paragraph, _by_gravity(findings)), total or "nothing examined"])


def as_json_lines(findings: Sequence[ProgramFinding]) -> str:
    """One object a line, in the same order; `path` and `line` are null for a finding without a place."""
    nowhere = {"path": None, "line": None}
    documents = map(asdict, _by_gravity(findings))
    return "\n".join(json.dumps({**(fields.pop("place") or nowhere), **fields}) for fields in documents)


def _by_gravity(findings: Sequence[ProgramFinding]) -> list[ProgramFinding]:
    return sorted(findings, key=lambda finding: list(Level).index(finding.level))


def _count_text(level: Level, count: int) -> str:
    plural = "s" if count > 1 and level in {Level.ERROR, Level.WARNING} else ""
    return f"{count} {level}{plural}"


def _paragraph(finding: ProgramFinding) -> str:
    place = f"{finding.place}: " if finding.place else ""
    lines = _wrapped_lines(f"{finding.level:14}{finding.subject:14}", f"{place}{finding.found}")
    for title, text in (("cost", finding.cost), ("repair", finding.repair)):
        if text:
            lines += _wrapped_lines(f"{'':14}{title:14}", text)
    return "\n".join(lines)


def _wrapped_lines(head: str, text: str) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )
