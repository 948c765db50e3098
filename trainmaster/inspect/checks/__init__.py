"""One module per check, except for the check of the files: the examined program goes in, findings come out."""

from trainmaster.inspect.checks import (
    arguments,
    checkpoints,
    keras,
    keras_files,
    metric,
    model_dir,
    packages,
    parameters,
    plain_files,
    roles,
    saving,
    strategy,
    survive,
)
from trainmaster.inspect.checks.examined import Check, Examined
from trainmaster.inspect.finding import Finding, Location, Subject


def _source(examined: Examined) -> Check:
    """Files that do not parse, and what was examined at all."""
    for path, error in examined.program.unparsed:
        yield Subject.SOURCE.fault(
            found=f"The file is not valid Python {error.msg and f'({error.msg})'}",
            place=Location(path=path, line=error.lineno),
            cost="Every replica exits with status 1 as soon as it imports the file.",
            repair="Fix the line, or do not import the file.",
        )
    entries = examined.program.entries
    shown = ", ".join(entry.shown for entry in entries[:3]) + (" and others" if len(entries) > 3 else "")  # noqa: PLR2004 - a line holds three
    count = len(examined.program.modules)
    if count:
        yield Subject.SOURCE.fine(
            f"{count} {'file' if count == 1 else 'files'} examined, starting from {shown}"
        )


ROOMS = (
    keras,
    strategy,
    saving,
    model_dir,
    plain_files,
    keras_files,
    roles,
    metric,
    parameters,
    arguments,
    checkpoints,
    survive,
    packages,
)


def findings_of(examined: Examined) -> list[Finding]:
    return [*_source(examined), *(finding for room in ROOMS for finding in room.check(examined))]
