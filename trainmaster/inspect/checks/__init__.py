"""One room per check, but for the files themselves: what was examined goes in, findings come out."""

from collections.abc import Callable, Iterator

from trainmaster.inspect.checks import (
    checkpoints,
    keras,
    metric,
    model_dir,
    parameters,
    roles,
    saving,
    strategy,
)
from trainmaster.inspect.checks.examined import Check, Examined
from trainmaster.inspect.finding import Finding, Place, Subject


def _source(examined: Examined) -> Check:
    """Files that do not parse, and what was examined at all."""
    for path, error in examined.program.unparsed:
        yield Subject.SOURCE.fault(
            found=f"The file is no Python {error.msg and f'({error.msg})'}",
            place=Place(path=path, line=error.lineno),
            cost="Every replica ends with exit status 1 as soon as it imports the file.",
            repair="Correct the line, or leave the file out of what the program imports.",
        )
    entries = examined.program.entries
    shown = ", ".join(entry.shown for entry in entries[:3]) + (" and others" if len(entries) > 3 else "")  # noqa: PLR2004 - a line holds three
    count = len(examined.program.modules)
    if count:
        yield Subject.SOURCE.fine(f"{count} {'file' if count == 1 else 'files'} examined, from {shown} on")


CHECKS: tuple[Callable[[Examined], Iterator[Finding]], ...] = (
    _source,
    keras.check,
    strategy.check,
    saving.check,
    model_dir.check,
    roles.check,
    metric.check,
    parameters.check,
    checkpoints.check,
)


def findings_of(examined: Examined) -> list[Finding]:
    return [finding for check in CHECKS for finding in check(examined)]
