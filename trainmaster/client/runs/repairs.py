"""The likely repair of a failed run, from the words of its error. For people: no decision depends on it."""

import re

from trainmaster.client.runs.facts import is_tuning
from trainmaster.orchestrator.core.admission.candidates import current_candidate
from trainmaster.orchestrator.core.completion.error_repair import PATH_OF_PLAIN_FILES, states_repair
from trainmaster.orchestrator.core.runs.job import Failure, RetryOn
from trainmaster.orchestrator.core.runs.record import RunRecord

_LESS_MEMORY = "use a smaller batch, or a machine or accelerator with more memory"
_RETRIES = "retries: 1, retry_on: [out_of_memory]"
_MORE_TIME = "raise `scheduling.timeout_s`, or train for fewer steps"
_KILLED = re.compile(
    r"killed \(SIGKILL\)|ran out of memory and exited|exited with a non-zero status of 137\b"
)
_UNREPORTED = "no trial reported the metric "
_REPORT = "let the chief report the tuning's metric with report_hyperparameter_tuning_metric, under the id that `problem` names"
_REPAIRS = {
    r"\bMemoryError\b|\bOutOfMemoryError\b|\bResourceExhaustedError\b|CUDA out of memory|OOM when allocating"
    r"|ran out of memory and exited|killed \(SIGKILL\)|exited with a non-zero status of 137\b": _LESS_MEMORY,
    r"the program rejected its arguments: |error: unrecognized arguments: |\bFATAL Flags parsing error:": (
        "compare `args` with what the program accepts, and with the tuning's parameters"
    ),
    r"\bsetup_logging\(\) sends them to the log ": (
        "leave the call out: Vertex AI collects standard error; what it sent is in Cloud Logging, in the log `python`"
    ),
    r"\bcrashed \(SIGSEGV\)|exited with a non-zero status of 139\b": (
        "set PYTHONFAULTHANDLER=1 in `env` to see the line; a package that does not fit the image is the usual cause"
    ),
    r"\bcrashed \(SIGBUS\)|exited with a non-zero status of 135\b": (
        "use fewer processes to load data, which share /dev/shm, or a machine with a larger disk"
    ),
    r"\bModuleNotFoundError: No module named ": (
        "install the package in the image, or add it to requirements.txt"
    ),
    r"\bForbidden: 403 (?:GET|POST|PUT|PATCH|DELETE)\b|\bPermissionDenied: 403 |\bPermissionDeniedError: "
    r"|does not have [a-z]+\.[A-Za-z]+\.[A-Za-z]+ access to the ": (
        "grant the job's service account access to what it names; `trainmaster doctor` tests the deployment"
    ),
    r"\bFileNotFoundError: \[Errno 2\] No such file or directory: 'gs:/": (
        PATH_OF_PLAIN_FILES[0].lower() + PATH_OF_PLAIN_FILES[1:]
    ),
    r"\bNotFound: 404 (?:(?:GET|POST|PUT|PATCH|DELETE)\b|No such object: |The specified bucket )|\bNotFoundError: Error executing an HTTP request: HTTP response code 404"
    r"|\bFileNotFoundError: [^\n]{0,300}(?:gs://|/gcs/)|\bno data in gs://": (
        "check that the path or object that the error names exists, in this project and region"
    ),
    r"\bFileNotFoundError: \[Errno 2\] No such file or directory: ": (
        "check that the file exists in the image, or in the script's folder: a job sees no other local files"
    ),
    r"\bthere was no capacity (?:in|for) the |Resources are insufficient in region|ZONE_RESOURCE_POOL_EXHAUSTED"
    r"|quota metrics exceed": ("try another region, machine or Spot VMs: a request may list `fallbacks`"),
    r"\bran longer than its timeout of ": _MORE_TIME,
    r"\bInput [Xy] contains (?:NaN|infinity)\b|\bNanLossDuringTrainingError\b|Model diverged with loss = NaN"
    r"|\b[Ll]oss (?:is|became) (?:NaN|nan)\b": (
        "lower the learning rate, and check the data for missing values"
    ),
}
"""Names of exceptions, and phrases of the libraries and the service: a word alone may mean anything in a program."""
_COMPILED = tuple((re.compile(pattern), repair) for pattern, repair in _REPAIRS.items())
_MOUNTED = re.compile(
    r"\b(?:FileNotFoundError: \[Errno 2\] [^\n']{0,80}|NotADirectoryError: [^\n']{0,80})'/gcs/([^/'\n]{1,222})"
)
_NO_FOLDER = re.compile(
    r"\bFileNotFoundError: \[Errno 2\] No such file or directory: '(/[^'\n]{1,1024})|\bParent directory (/\S{1,1024}) does not exist"
)
"""The second is torch.save's."""
READ_MAX_CHARS = 10_000
_OF_TRIALS = re.compile(r"\d+ of \d+ trials are infeasible\b")
_MORE_TRIALS = "To let the tuning continue after a failed trial, raise `tuning.max_failed_trials`"


def repair_of(failure: Failure, run_id: str, record: RunRecord | None = None) -> str | None:
    """What usually repairs this failure of a run, from its message, the last lines that were read, and its record.

    None if unknown, and if the message says it.
    """
    error = " ".join((failure.message, *(failure.last_lines or ())))
    known = None if states_repair(failure.message) else likely_repair(error, run_id)
    if known == _LESS_MEMORY and record and record.request:
        was_killed = _KILLED.search(failure.message) is not None
        known = _with_machine(known, record, failure) if was_killed else f"{known}{_why_not_retried(record)}"
    if known == _MORE_TIME and record and not is_tuning(record):
        return f"{known}; to continue from the checkpoints it may have left: trainmaster again {run_id} --continue"
    if not _OF_TRIALS.match(failure.message):
        return known
    if known is None and record and any(problem.startswith(_UNREPORTED) for problem in record.problems):
        return _REPORT
    return f"{known}. {_MORE_TRIALS}" if known else _MORE_TRIALS


def _with_machine(repair: str, record: RunRecord, failure: Failure) -> str:
    """With the memory of the replica's machine, the next larger one, and how to pay for one failure only."""
    from trainmaster.client.machines import shipped_machines  # they import the parser of YAML
    from trainmaster.orchestrator.core.policy.memory import memory_of, next_larger

    pools = current_candidate(record).spec.cluster.pools
    number = re.match(r"workerpool([0-3])-", failure.replica or "")
    pool = pools[int(number[1]) if number else 0]
    machine, memory_gb = (pool.machine, memory_of(pool.machine)) if pool else ("", None)
    if memory_gb is None:
        return repair
    larger = next_larger(machine, shipped_machines())
    more = f"; {larger[0]} has {larger[1]:g} GB" if larger else ""
    is_retried = RetryOn.OUT_OF_MEMORY in current_candidate(record).spec.scheduling.retry_on
    by_itself = (
        "" if is_retried or not larger else f"; `scheduling: {{{_RETRIES}}}` continues there by itself"
    )
    once = "; `scheduling.disable_retries` leaves out Vertex AI's restarts on the same machine, which cost as much again"
    return f"{repair}: {machine} has {memory_gb:g} GB{more}{by_itself}{once}"


def _why_not_retried(record: RunRecord) -> str:
    """Why no job on a larger machine followed, though the request asks for that."""
    if RetryOn.OUT_OF_MEMORY not in current_candidate(record).spec.scheduling.retry_on:
        return ""
    return "; no retry followed, because the program ended itself: `out_of_memory` is about programs that are killed (exit status 137)"


def likely_repair(error: str, run_id: str | None = None) -> str | None:
    """What usually repairs such an error; None if its words match none of the known ones.

    `run_id`: of the run with this error, whose own folders have it in their paths.
    """
    text = error[:READ_MAX_CHARS]
    missing = _NO_FOLDER.search(text)
    if missing is not None and run_id in (missing[1] or missing[2]).split("/"):
        return "make the folder before the program writes to it: os.makedirs(folder, exist_ok=True)"
    if (mounted := _MOUNTED.search(text)) is not None:
        return f"check that the bucket {mounted[1]!r} and the path in it exist: /gcs has only buckets that the job can read"
    return next((repair for pattern, repair in _COMPILED if pattern.search(text)), None)
