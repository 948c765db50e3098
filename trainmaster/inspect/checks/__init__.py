"""One module per check of the source: what is examined goes in, findings come out.

Reading shows faults, and how far it followed. That a program does right is seen only where it runs, so of these only the
check of the files says `ok`.
"""

from trainmaster.inspect.checks import arguments, flags, logging, metric, model_dir
from trainmaster.inspect.checks.examined import Check, Examined
from trainmaster.inspect.finding import FindingSubject, ProgramFinding, SourceLocation, some_of


def _files(examined: Examined) -> Check:
    """Files that do not parse, and what was read at all."""
    source = examined.source
    for path, error in source.unparsed:
        yield FindingSubject.SOURCE.fault(
            found=f"The file is not valid Python {error.msg and f'({error.msg})'}",
            place=SourceLocation(path=path, line=error.lineno),
            cost="Every replica exits with status 1 as soon as it imports the file.",
            repair="Fix the line, or do not import the file.",
        )
    count = len(source.modules)
    if count:
        entries = some_of([entry.shown_path for entry in source.entries])
        yield FindingSubject.SOURCE.fine(
            f"{count} {'file parses' if count == 1 else 'files parse'}, starting from {entries}"
        )


_CHECKS = (_files, arguments.check, flags.check, metric.check, model_dir.check, logging.check)


def findings_of(examined: Examined) -> list[ProgramFinding]:
    return [finding for check in _CHECKS for finding in check(examined)]
