"""`setup_logging()` of google-cloud-logging, which takes the program's errors out of the job's log.

It gives the root logger a handler for the log `python` (google.cloud.logging.handlers.CloudLoggingHandler), so a traceback
that `logging.exception` writes is not in standard error, which is what Vertex AI collects.
"""

from trainmaster.inspect.checks.examined import Check, Examined
from trainmaster.inspect.finding import FindingSubject, Level


def check(examined: Examined) -> Check:
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
