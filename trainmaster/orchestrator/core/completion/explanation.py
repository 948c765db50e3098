"""The reason of a job's failure, from the end of its log: the replica that failed first, its error and its last lines.

The service names a replica and its exit status, and links to the log. Peers that wait for a lost replica fail too,
often before the service notices the first failure.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from trainmaster.orchestrator.core.completion.entry import END_LINES
from trainmaster.orchestrator.core.completion.error_repair import as_sentence, with_repair
from trainmaster.orchestrator.core.completion.last_error import (
    ErrorFound,
    error_found,
    is_lost_peer_error,
    shortened_error,
)
from trainmaster.orchestrator.core.completion.replica_exit import RESTARTED, ReplicaExit, parse_exit
from trainmaster.orchestrator.core.documents.faults import cut
from trainmaster.orchestrator.core.job_names import job_id
from trainmaster.orchestrator.core.requests.draft import SCRIPT
from trainmaster.orchestrator.core.runs.end import TuningResult
from trainmaster.orchestrator.core.runs.job import Failure, RecordedTrial, TrialState
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.states import RunState

SERVICE = "service"
"""The task under which the service logs its lines."""
TRIALS_EXPLAINED = 3
LAST_LINES = 20
LINE_MAX_CHARS = 300
READ_MAX_CHARS = 2000
"""Only the beginning of a longer line is examined."""
LINES_OF_AN_ENTRY = 200
FIRST_SIGNAL = 128
"""A program that a signal ended has this exit status and the signal's number; one that an exception ended has 1."""
OF_ONE_END = timedelta(minutes=5)
"""Errors further apart belong to different starts of the job's replicas."""
LOG_DELAY = timedelta(minutes=2)
"""How long after a run's end its job's log may still arrive; the notice of the end waits at most this long."""
_NO_TIME = datetime.max.replace(tzinfo=UTC)

_LOG_LINK = re.compile(r"\s*To find out more\b[^\n]{0,200}?\bhttps?://\S+")
"""The sentence with a link to the Cloud console: hundreds of characters long, and a dead link for local jobs."""
_REPLICA = re.compile(r"[a-z][a-z0-9-]{0,62}")
LOGGED_ELSEWHERE = "its errors are not in the job's log: setup_logging() sends them to the log `python`"
_SENT_ELSEWHERE = re.compile(
    r"(?:Sent all|Failed to send \d+) pending logs\.|(?:Program|Background thread|CloudLoggingHandler) shutting down, "
)
"""What google.cloud.logging.handlers.transports.BackgroundThreadTransport writes at a program's end."""
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|.)")


@dataclass(frozen=True, kw_only=True)
class LogEntry:
    """One entry of a job's log: `task` is a replica, for example `workerpool1-0`, or the service itself."""

    task: str
    at: datetime
    insert_id: str
    text: str


@dataclass(frozen=True, kw_only=True)
class LogQuery:
    """Which entries to read: all of the job's, or only those of one trial or replica."""

    job_id: str
    since: datetime | None = None
    trial_id: str | None = None
    replica: str | None = None


@dataclass(frozen=True, kw_only=True)
class Question:
    """A job or a trial whose failure the log may explain. `words` are the service's own message about it.

    `runs_script`: its replicas run the request's packed script.
    """

    query: LogQuery
    words: str
    runs_script: bool = False

    @property
    def trial_id(self) -> str | None:
        return self.query.trial_id


@dataclass(frozen=True, kw_only=True)
class _Ending:
    """How one replica ended, according to its own lines."""

    replica: str
    at: datetime
    error: ErrorFound | None
    last_lines: tuple[str, ...]
    lines_behind: int = 0
    """How many lines it wrote after its error."""

    @property
    def is_cause(self) -> bool:
        """Whether the replica failed on its own, not because it lost a peer."""
        return self.error is not None and self.error.is_certain and not is_lost_peer_error(self.error.text)


def without_log_link(words: str) -> str:
    """The service's message without its link to the log, which the drop's status gives as `logs`."""
    return _LOG_LINK.sub("", words)


def questions_about(record: RunRecord) -> Sequence[Question]:
    """What to look up in the log of an ended run: its failed job, or the first of its failed trials; else nothing."""
    job = record.job
    if job is None or job.start_time is None:
        return ()
    query = LogQuery(job_id=job_id(job.name), since=job.create_time)
    if record.tuning is not None:
        return _about_trials(record, record.tuning.trials, query)
    if record.state is not RunState.FAILED or record.failure is None or _is_explained(record.failure):
        return ()
    words = _service_words(record.failure)
    return (Question(query=query, words=words, runs_script=_runs_script(record)),)


def _runs_script(record: RunRecord) -> bool:
    return record.request is not None and SCRIPT in record.request.document


def _is_explained(failure: Failure) -> bool:
    return failure.last_lines is not None or failure.replica is not None


def _service_words(failure: Failure) -> str:
    return failure.message if failure.code else ""


def _about_trials(record: RunRecord, trials: Sequence[RecordedTrial], query: LogQuery) -> Sequence[Question]:
    """About the first infeasible trials that ran, and ended before the run's cancellation was requested."""
    cancelled_at = record.cancel_requested_at or _NO_TIME
    ran = [trial for trial in _infeasible(trials) if trial.start_time is not None]
    asked = [trial for trial in ran if (trial.end_time or _NO_TIME) < cancelled_at][:TRIALS_EXPLAINED]
    about = ((replace(query, trial_id=one.id), one) for one in asked if not one.failure)
    script = _runs_script(record)
    return [Question(query=of, words=one.infeasible_reason or "", runs_script=script) for of, one in about]


def _infeasible(trials: Sequence[RecordedTrial]) -> Sequence[RecordedTrial]:
    """The infeasible trials, in the order in which they ended; the service says in no documented way what each lacked."""
    infeasible = (trial for trial in trials if trial.state is TrialState.INFEASIBLE)
    return sorted(infeasible, key=lambda trial: trial.end_time or _NO_TIME)


def has_arrived(entries: Sequence[LogEntry]) -> bool:
    """Whether the service's final line is among the entries; everything that replicas wrote before it is, too."""
    return any(entry.task == SERVICE and any(line in entry.text for line in END_LINES) for entry in entries)


def first_failure(entries: Sequence[LogEntry], words: str, *, runs_script: bool = False) -> Failure | None:
    """The replica that failed first, its error in one line, and its last lines; None if no entry shows them.

    `entries` may be in any order; `words` are the service's message, which may be empty; `runs_script` is the question's.
    A replica that a signal ended may have written no line.
    """
    exited = parse_exit(words) or _exit_logged(entries)
    named = exited.replica if exited else None
    ending = _first(_endings(entries), named=named, killed=exited is not None and exited.was_killed)
    signal = exited.signal_text if exited else None
    restarts = sum(bool(RESTARTED.search(entry.text)) for entry in entries if entry.task == SERVICE)
    if signal and restarts:
        signal = f"{signal}, after at least {restarts} restart{'' if restarts == 1 else 's'}"
    if ending is None:
        is_all = exited is not None and signal is not None and has_arrived(entries)
        return Failure(message=signal or "", replica=named) if is_all else None
    is_cause = signal is not None and ending.replica == named
    if is_cause and ending.error is not None and ending.error.is_certain:
        # A crash, with the last word of the program.
        is_cause = exited is not None and exited.was_killed
    status = exited.status if exited and ending.replica == named else 1
    message = signal if signal and is_cause else _message(ending, status, runs_script=runs_script)
    return Failure(message=message, replica=ending.replica, last_lines=ending.last_lines)


def _exit_logged(entries: Sequence[LogEntry]) -> ReplicaExit | None:
    """The service's latest line about a replica's exit, which the job's error repeats."""
    lines = sorted((entry for entry in entries if entry.task == SERVICE), key=lambda entry: entry.at)
    found = [exited for line in lines if (exited := parse_exit(line.text))]
    return found[-1] if found else None


def _message(ending: _Ending, status: int, *, runs_script: bool) -> str:
    if any(_SENT_ELSEWHERE.match(line) for line in ending.last_lines) and not ending.is_cause:
        return LOGGED_ELSEWHERE
    if ending.error is None:  # after sys.exit(text), for example
        return f"its last line was: {shortened_error(ending.last_lines[-1])!r}"
    if ending.error.refused_arguments:
        return f"the program rejected its arguments: {ending.error.text}"
    if ending.is_cause and ending.lines_behind and 1 < status < FIRST_SIGNAL:  # the program caught the error
        what = f"{ending.lines_behind} line{'' if ending.lines_behind == 1 else 's'}"
        return f"exited with status {status}, {what} after it wrote {ending.error.text}"
    return with_repair(ending.error.text, runs_script=runs_script)


def _first(endings: Sequence[_Ending], *, named: str | None, killed: bool) -> _Ending | None:
    """The replica with the earliest error that no lost peer explains.

    A killed replica writes no error, but its peers do: then the replica that the service names is the first.
    """
    own = next((ending for ending in endings if ending.replica == named), None)
    causes = [ending for ending in endings if ending.is_cause]
    if causes and not killed:
        last = own if own in causes else max(causes, key=_order)
        return min((ending for ending in causes if ending.at >= last.at - OF_ONE_END), key=_order)
    if named is not None:
        return own
    certain = (ending for ending in endings if ending.error and ending.error.is_certain)
    return min(certain, key=_order, default=None)


def _order(ending: _Ending) -> tuple[datetime, str]:
    return ending.at, ending.replica


def _endings(entries: Sequence[LogEntry]) -> Sequence[_Ending]:
    """How each replica ended."""
    lines: defaultdict[str, list[tuple[datetime, str]]] = defaultdict(list)
    for entry in sorted(entries, key=lambda entry: (entry.at, entry.insert_id)):
        if entry.task != SERVICE and _REPLICA.fullmatch(entry.task):
            lines[entry.task] += ((entry.at, line) for line in _lines(entry.text))
    return [_ending(replica, own) for replica, own in lines.items() if own]


def _ending(replica: str, lines: Sequence[tuple[datetime, str]]) -> _Ending:
    texts = [text for _, text in lines]
    error = error_found(texts)
    if error is not None and lines[-1][0] - lines[error.index][0] > OF_ONE_END:
        error = None  # the program survived this error
    shown = error.around if error is not None else texts
    return _Ending(
        replica=replica,
        at=lines[error.index if error is not None else -1][0],
        error=error,
        last_lines=cut_lines(shown[-LAST_LINES:]),
        lines_behind=len(lines) - 1 - error.index if error is not None else 0,
    )


def cut_lines(lines: Iterable[str]) -> tuple[str, ...]:
    """Lines of a log as every screen shows them beside a failure: of each the first LINE_MAX_CHARS."""
    return tuple(cut(line, LINE_MAX_CHARS) for line in lines)


def _lines(text: str) -> Sequence[str]:
    """The printable lines of an entry, without those that a terminal would have overwritten."""
    lines = _ESCAPES.sub("", text).replace("\r\n", "\n").split("\n")[-LINES_OF_AN_ENTRY:]
    shown = (line.rstrip("\r").rpartition("\r")[2][:READ_MAX_CHARS] for line in lines)
    printable = ("".join(char if char.isprintable() else " " for char in line).rstrip() for line in shown)
    return [line for line in printable if line]


def with_explanation(record: RunRecord, found: Mapping[str | None, Failure]) -> RunRecord:
    """The record with the failures found in the log: its job's under None, its trials' by id. Safe to repeat."""
    if record.tuning is not None:
        return _tuning_explained(record, record.tuning, found)
    cause = found.get(None)
    if cause is None or record.failure is None or _is_explained(record.failure):
        return record
    words = _service_words(record.failure)
    message = f"{cause.replica}: {as_sentence(cause.message)} {words}".rstrip() if cause.message else words
    return replace(record, failure=_with_cause(record.failure, cause, message))


def _tuning_explained(
    record: RunRecord, tuning: TuningResult, found: Mapping[str | None, Failure]
) -> RunRecord:
    trials = tuple(
        replace(trial, failure=found[trial.id]) if trial.failure is None and trial.id in found else trial
        for trial in tuning.trials
    )
    known = replace(record, tuning=replace(tuning, trials=trials))
    infeasible = _infeasible(trials)
    first = next((trial for trial in infeasible if trial.failure or trial.infeasible_reason), None)
    if first is None or not found or record.failure is None or _is_explained(record.failure):
        return known
    cause = first.failure or Failure(message=first.infeasible_reason or "")
    what = f": {first.infeasible_reason or f'the replica {cause.replica} was killed'}"
    what = f", {cause.replica}: {cause.message}" if cause.replica and cause.message else what
    message = f"{len(infeasible)} of {len(trials)} trials are infeasible; the first, trial {first.id}{what}"
    words = _service_words(record.failure)
    message = f"{as_sentence(message)} {words}" if words else message
    return replace(known, failure=_with_cause(record.failure, cause, message))


def _with_cause(failure: Failure, cause: Failure, message: str) -> Failure:
    message = message or failure.message
    return replace(failure, message=message, replica=cause.replica, last_lines=cause.last_lines)
