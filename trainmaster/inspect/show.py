"""Findings as people and as programs read them."""

import json
import textwrap
from collections.abc import Sequence

from trainmaster.inspect.finding import Finding, Level

WIDTH = 110
ORDER = (Level.ERROR, Level.WARNING, Level.UNKNOWN, Level.OK)
COUNTED = {Level.ERROR: "error", Level.WARNING: "warning", Level.UNKNOWN: "unknown", Level.OK: "ok"}


def as_text(findings: Sequence[Finding]) -> str:
    """The gravest first, then a line that counts them."""
    shown = [_paragraph(finding) for level in ORDER for finding in findings if finding.level is level]
    counts = {level: sum(finding.level is level for finding in findings) for level in ORDER}
    total = ", ".join(_counted(level, count) for level, count in counts.items() if count)
    return "\n".join([*shown, total or "nothing examined"])


def as_json_lines(findings: Sequence[Finding]) -> str:
    """One object a line, in the same order; `path` and `line` are null where there is none."""
    return "\n".join(
        json.dumps(
            {
                "level": finding.level,
                "subject": finding.subject,
                "found": finding.found,
                "path": finding.place.path if finding.place else None,
                "line": finding.place.line if finding.place else None,
                "cost": finding.cost,
                "repair": finding.repair,
            }
        )
        for level in ORDER
        for finding in findings
        if finding.level is level
    )


def _counted(level: Level, count: int) -> str:
    plural = "s" if count > 1 and level in {Level.ERROR, Level.WARNING} else ""
    return f"{count} {COUNTED[level]}{plural}"


def _paragraph(finding: Finding) -> str:
    place = f"{finding.place}: " if finding.place else ""
    lines = _wrapped(f"{finding.level:8}{finding.subject:13}", f"{place}{finding.found}")
    for title, text in (("cost", finding.cost), ("repair", finding.repair)):
        if text:
            lines += _wrapped(f"{'':8}{title:13}", text)
    return "\n".join(lines)


def _wrapped(head: str, text: str) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )
