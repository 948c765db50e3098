"""The likely repair of a failed run, from the words of its error. For people: no decision depends on it."""

import re

_REPAIRS = (
    (
        r"out of memory|ran out of memory|\bOOM\b|MemoryError|non-zero status of 137|ResourceExhausted",
        "use a smaller batch, or a machine or accelerator with more memory",
    ),
    (
        r"rejected its arguments|unrecognized arguments|invalid choice|Flags parsing error",
        "compare `args` with what the program accepts, and with the tuning's parameters",
    ),
    (
        r"ModuleNotFoundError|ImportError|No module named",
        "install the package in the image, or add it to requirements.txt",
    ),
    (
        r"\b403\b|PermissionDenied|permission|Forbidden",
        "grant the job's service account access to what it names; `trainmaster doctor` tests the deployment",
    ),
    (
        r"\b404\b|NotFoundError|FileNotFoundError|No such file|does not exist|no data in",
        "check that the path or object that the error names exists, in this project and region",
    ),
    (
        r"no capacity|insufficient|quota|stockout",
        "try another region, machine or Spot VMs: a request may list `fallbacks`",
    ),
    (r"timed out|DeadlineExceeded|timeout", "raise `scheduling.timeout_s`, or train for fewer steps"),
    (
        r"preempt|restart",
        "save checkpoints and continue from them, and set `scheduling.restart_on_worker_restart`",
    ),
    (
        r"(?i)\b(loss|metric|gradients?|input|output|tensor)\b[^\n]{0,60}\b(nan|inf)\b|\bnan (loss|values?)\b",
        "lower the learning rate, and check the data for missing values",
    ),
)
_COMPILED = tuple((re.compile(pattern), repair) for pattern, repair in _REPAIRS)
READ_MAX_CHARS = 10_000


def likely_repair(error: str) -> str | None:
    """What usually repairs such an error; None if its words match none of the known ones."""
    text = error[:READ_MAX_CHARS]
    return next((repair for pattern, repair in _COMPILED if pattern.search(text)), None)
