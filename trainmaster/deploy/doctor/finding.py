"""The finding of one check, and its printed form."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from trainmaster.client.terminal import one_line

_MOST_CHARS = 600


class Verdict(StrEnum):
    OK = "ok"
    FAILED = "FAILED"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One check: what was tested, the result, and the commands or hints that repair it."""

    check: str
    verdict: Verdict
    message: str
    repairs: tuple[str, ...] = ()

    def __str__(self) -> str:
        check, message, *repairs = (
            one_line(each, _MOST_CHARS) for each in (self.check, self.message, *self.repairs)
        )
        return "\n".join(
            [f"{self.verdict.value:<8} {check}: {message}", *(f"{'':<8}   {each}" for each in repairs)]
        )


def ok(check: str, message: str) -> Finding:
    return Finding(check=check, verdict=Verdict.OK, message=message)


def failed(check: str, message: str, *repairs: str) -> Finding:
    return Finding(check=check, verdict=Verdict.FAILED, message=message, repairs=repairs)


def unknown(check: str, message: str, *repairs: str) -> Finding:
    return Finding(check=check, verdict=Verdict.UNKNOWN, message=message, repairs=repairs)


def summary(findings: Sequence[Finding]) -> str:
    counts = {verdict: sum(each.verdict is verdict for each in findings) for verdict in Verdict}
    parts = [f"{counts[Verdict.OK]} of {len(findings)} checks passed"]
    if counts[Verdict.FAILED]:
        parts.append(f"{counts[Verdict.FAILED]} failed")
    if counts[Verdict.UNKNOWN]:
        parts.append(f"{counts[Verdict.UNKNOWN]} could not be run")
    return ", ".join(parts) + "."
