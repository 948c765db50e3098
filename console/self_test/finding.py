"""What one check found, and how it is printed."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

_UNPRINTABLE = re.compile(r"[^\x20-\x7e\u00a0-\ud7ff\ue000-\uffef]+")
_MOST_CHARS = 600


class Verdict(StrEnum):
    OK = "ok"
    FAILED = "FAILED"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One check: what was tried, how it went, and the commands or words that mend it."""

    check: str
    verdict: Verdict
    said: str
    repairs: tuple[str, ...] = ()

    def __str__(self) -> str:
        head = f"{self.verdict.value:<8} {shown(self.check)}: {shown(self.said)}"
        return "\n".join([head, *(f"{'':<8}   {shown(repair)}" for repair in self.repairs)])


def ok(check: str, said: str) -> Finding:
    return Finding(check=check, verdict=Verdict.OK, said=said)


def failed(check: str, said: str, *repairs: str) -> Finding:
    return Finding(check=check, verdict=Verdict.FAILED, said=said, repairs=repairs)


def unknown(check: str, said: str, *repairs: str) -> Finding:
    return Finding(check=check, verdict=Verdict.UNKNOWN, said=said, repairs=repairs)


def shown(text: str) -> str:
    """One printable line, whatever a service said: terminals obey what they print."""
    line = _UNPRINTABLE.sub(" ", text)
    return line if len(line) <= _MOST_CHARS else f"{line[:_MOST_CHARS]}…"


def summary(findings: Sequence[Finding]) -> str:
    counts = {verdict: sum(each.verdict is verdict for each in findings) for verdict in Verdict}
    parts = [f"{counts[Verdict.OK]} of {len(findings)} checks are well"]
    if counts[Verdict.FAILED]:
        parts.append(f"{counts[Verdict.FAILED]} failed")
    if counts[Verdict.UNKNOWN]:
        parts.append(f"{counts[Verdict.UNKNOWN]} could not be made")
    return ", ".join(parts) + "."
