"""Faults on the screen: in the order of the file, each with its line and a mark below its place."""

from collections.abc import Iterable, Iterator

import click

from trainmaster.client.submission.examination import Examination
from trainmaster.orchestrator.core.documents.faults import Fault
from trainmaster.orchestrator.core.documents.placing import lines_of_fault, position

ERROR, WARNING = "error", "warning"
_COLOURS = {ERROR: "red", WARNING: "yellow"}


def fault_lines(faults: Iterable[Fault], file: str, level: str = ERROR) -> Iterator[str]:
    """The lines that show the faults of `file`; on a terminal, the first of each has a colour."""
    for fault in sorted(faults, key=position):
        first, *rest = lines_of_fault(fault, file, level)
        yield click.style(first, fg=_COLOURS[level], bold=True)
        yield from rest


def problem_lines(examination: Examination) -> Iterator[str]:
    """Why the verb cannot send it; its faults have their colours."""
    if examination.faults and examination.kind is examination.expected:
        yield from fault_lines(examination.faults, examination.faulty)
    elif examination.refusal:
        yield examination.refusal
