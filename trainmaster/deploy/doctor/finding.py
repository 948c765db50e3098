"""The finding of one check, and its printed form."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from trainmaster.client.terminal import one_line

_MOST_CHARS = 600


class FindingVerdict(StrEnum):
    OK = "ok"
    FAILED = "FAILED"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class DoctorFinding:
    """One check: what was tested, the result, and the commands or hints that repair it."""

    check: str
    verdict: FindingVerdict
    message: str
    repairs: tuple[str, ...] = ()

    def __str__(self) -> str:
        check, message, *repairs = (
            one_line(each, _MOST_CHARS) for each in (self.check, self.message, *self.repairs)
        )
        return "\n".join(
            [f"{self.verdict.value:<8} {check}: {message}", *(f"{'':<8}   {each}" for each in repairs)]
        )


def ok(check: str, message: str) -> DoctorFinding:
    return DoctorFinding(check=check, verdict=FindingVerdict.OK, message=message)


def failed_finding(check: str, message: str, *repairs: str) -> DoctorFinding:
    return DoctorFinding(check=check, verdict=FindingVerdict.FAILED, message=message, repairs=repairs)


def unknown(check: str, message: str, *repairs: str) -> DoctorFinding:
    return DoctorFinding(check=check, verdict=FindingVerdict.UNKNOWN, message=message, repairs=repairs)


def summary(findings: Sequence[DoctorFinding]) -> str:
    counts = {verdict: sum(each.verdict is verdict for each in findings) for verdict in FindingVerdict}
    parts = [f"{counts[FindingVerdict.OK]} of {len(findings)} checks passed"]
    if counts[FindingVerdict.FAILED]:
        parts.append(f"{counts[FindingVerdict.FAILED]} failed")
    if counts[FindingVerdict.UNKNOWN]:
        parts.append(f"{counts[FindingVerdict.UNKNOWN]} could not be run")
    return ", ".join(parts) + "."
