"""One module per check of the source, but for the two shortest: what is examined goes in, findings come out.

Reading shows faults, and how far it followed. That a program does right is seen only where it runs, so of these only the
check of the files says `ok`.
"""

from trainmaster.inspect.checks import arguments, flags, metric, model_dir
from trainmaster.inspect.finding import FindingSubject, Level, ProgramFinding, SourceLocation, some_of
from trainmaster.inspect.start import Check, Examined


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


def _logging(examined: Examined) -> Check:
    """`setup_logging()` of google-cloud-logging, which takes the program's errors out of the job's log.

    It gives the root logger a handler for the log `python` (google.cloud.logging.handlers.CloudLoggingHandler), so a
    traceback that `logging.exception` writes is not in standard error, which is what Vertex AI collects.
    """
    if "google.cloud.logging" not in examined.source.imported_names:
        return
    for module, call, name in examined.source.calls():
        if name == "setup_logging":
            yield FindingSubject.LOGGING.fault(
                f"`{name}` sends what the program logs to the log `python`, not to the job's",
                module.place(call),
                level=Level.WARNING,
                cost="A failed run shows no error: it is not in the job's log.",
                repair="Leave the call out: Vertex AI collects standard error, and a line that is one JSON object "
                "becomes a structured entry.",
            )


_CHECKS = (_files, arguments.check, flags.check, metric.check, model_dir.check, _logging)


def findings_of(examined: Examined) -> list[ProgramFinding]:
    return [finding for check in _CHECKS for finding in check(examined)]
