"""Reads the log of some jobs: its end first, then what is new; all of it, or what is selected."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from trainmaster.client.errors import NotFound
from trainmaster.client.logs.line import SERVICE, LogLine, line_of
from trainmaster.orchestrator.core.admission.candidates import candidates_of
from trainmaster.orchestrator.core.completion.entry import TRIAL_LABEL
from trainmaster.orchestrator.core.requests.spec import Cluster
from trainmaster.orchestrator.core.runs.record import RunRecord

if TYPE_CHECKING:
    from google.cloud.logging import Client as LoggingClient

PAGE = 1000
"""The service's largest page."""
LINES_MAX = 100_000
READ_MAX = 20_000
"""Lines that one call of `new` reads; the next call continues behind them."""
CHIEF = "chief"
_POOLS = {CHIEF: 0, "worker": 1, "ps": 2, "evaluator": 3}
"""Vertex AI's pools by the roles in TF_CONFIG, by which TensorFlow's programs name their replicas."""
NUMBER_MAX_CHARS = 9
"""Beyond any replica that there can be; a number of any length would take long to read."""
LATE = timedelta(minutes=1)
"""How far back each query reaches: replicas send lines in batches, so a line may become readable after others with later
timestamps. A line that is later than this is missed."""


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which lines of a log are read. None selects all."""

    replica: str | None = None
    """For example `workerpool1-0`, or `worker-0` for it; `chief` is the first replica of the first pool."""
    trial_id: str | None = None
    since: datetime | None = None
    text: str | None = None
    """Regardless of case, in the text of a line or anywhere in its payload."""
    before: datetime | None = None
    """Only lines of this time and earlier ones."""

    def filter_of(self, job_ids: Iterable[str], since: datetime) -> str:
        """The selected lines of these jobs, at or after `since`, in the language of Cloud Logging.

        Without a time in it, the official client would read the last day alone.
        Source: https://cloud.google.com/logging/docs/view/logging-query-language
        """
        jobs = " OR ".join(f"resource.labels.job_id={_quoted_text(job_id)}" for job_id in job_ids)
        begin = since if self.since is None else max(since, self.since)
        terms = ['resource.type="ml_job"', f"({jobs})", f"timestamp>={_quoted_text(begin.isoformat())}"]
        if self.replica is not None:
            replica = service_name(self.replica)
            terms.append(f"resource.labels.task_name={_quoted_text(replica)}")
        if self.trial_id is not None:
            terms.append(f'labels."{TRIAL_LABEL}"={_quoted_text(self.trial_id)}')
        if self.text is not None:
            text = _quoted_text(self.text)
            terms.append(f"(textPayload:{text} OR jsonPayload:{text})")
        if self.before is not None:
            terms.append(f"timestamp<={_quoted_text(self.before.isoformat())}")
        return " AND ".join(terms)


def service_name(replica: str) -> str:
    """The name by which Vertex AI logs the replica: `workerpool1-0` for `worker-0`, else the name itself."""
    role, _, number = (f"{CHIEF}-0" if replica == CHIEF else replica).rpartition("-")
    return f"workerpool{_POOLS[role]}-{number}" if role in _POOLS else replica


def _quoted_text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def check_selection(selection: Selection, record: RunRecord) -> None:
    """Refuse a replica or trial that no job of the run can have.

    Raises:
        NotFound: the message has the run's replicas, or how many trials it has.
    """
    specs = [candidate.spec for candidate in candidates_of(record)] if record.request is not None else []
    if not specs:
        return
    pools = sorted({pool for spec in specs for pool in pool_sizes(spec.cluster)})
    sizes = {name: max(size for pool, size in pools if pool == name) for name, _ in pools}
    pool, _, number = service_name(selection.replica or CHIEF).rpartition("-")
    is_replica = (
        0 < len(number) < NUMBER_MAX_CHARS and number.isdecimal() and int(number) < sizes.get(pool, 0)
    )
    if not is_replica and selection.replica != SERVICE:
        ends = {name: "" if size == 1 else f" to {name}-{size - 1}" for name, size in sizes.items()}
        named = ", ".join(f"{name}-0{end}" for name, end in ends.items())
        raise NotFound(
            f"{record.run_id} has no replica {selection.replica!r}. It has {named}; "
            f"{SERVICE} is Vertex AI itself."
        )
    if selection.trial_id is not None:
        _check_trial(
            selection.trial_id, record, max(spec.tuning.max_trials if spec.tuning else 0 for spec in specs)
        )


def _check_trial(trial_id: str, record: RunRecord, most: int) -> None:
    """Refuse a trial that the record lacks; before it lists them, one with a number that the request does not allow."""
    recorded = [trial.id for trial in record.tuning.trials] if record.tuning is not None else []
    if not recorded and not most:
        raise NotFound(f"{record.run_id} is not a tuning, so it has no trials. Leave out --trial.")
    is_number = len(trial_id) < NUMBER_MAX_CHARS and trial_id.isascii() and trial_id.isdecimal()
    if trial_id in recorded or (not recorded and is_number and 0 < int(trial_id) <= most):
        return
    known = recorded or [str(number) for number in range(1, most + 1)]
    has = f"trials {known[0]} to {known[-1]}" if len(known) > 1 else f"only trial {known[0]}"
    raise NotFound(f"{record.run_id} has no trial {trial_id!r}. It has {has}.")


def pool_sizes(cluster: Cluster) -> list[tuple[str, int]]:
    """The name and size of each worker pool, as Vertex AI names its replicas."""
    return [
        (f"workerpool{place}", pool.replicas) for place, pool in enumerate(cluster.pools) if pool is not None
    ]


class JobLogReader:
    """Reads the log of a run's jobs; each line is returned once."""

    def __init__(self, client: "LoggingClient", begin: datetime, selection: Selection | None = None) -> None:
        """`begin`: no line is older, for example when the run was reserved."""
        self._client, self._selection = client, selection or Selection()
        self._from = begin
        self._seen: dict[tuple[str, datetime], None] = {}

    def last(self, job_ids: Sequence[str], limit: int) -> tuple[list[LogLine], bool]:
        """The last `limit` lines, oldest first, and whether earlier ones were left out. Later calls of `new` continue.

        Raises:
            google.api_core.exceptions.GoogleAPICallError, requests.exceptions.RequestException: the log cannot be read.
        """
        newest = self._list(job_ids, self._from, "timestamp desc", limit + 1)
        in_order = list(reversed(newest[:limit]))  # so that lines of one time keep theirs
        lines, left_out = sorted(in_order, key=lambda line: line.at), len(newest) > limit
        self._note(lines)
        if lines:
            earliest = lines[0].at if left_out else self._from
            self._from = max(earliest, lines[-1].at - LATE)
        return lines, left_out

    def new(self, job_ids: Sequence[str]) -> list[LogLine]:
        """Lines that no call has returned yet, oldest first; at most READ_MAX.

        Raises:
            google.api_core.exceptions.GoogleAPICallError, requests.exceptions.RequestException: the log cannot be read.
        """
        read = self._list(job_ids, self._from, "timestamp asc", READ_MAX)
        fresh = [line for line in read if (line.insert_id, line.at) not in self._seen]
        self._note(fresh)
        if read:
            behind = timedelta(0) if len(read) >= READ_MAX else LATE
            self._from = max(self._from, read[-1].at - behind)
        self._seen = {key: None for key in self._seen if key[1] >= self._from}
        return sorted(fresh, key=lambda line: line.at)

    def _list(self, job_ids: Sequence[str], since: datetime, order: str, most: int) -> list[LogLine]:
        if not job_ids:
            return []
        found = self._client.list_entries(
            filter_=self._selection.filter_of(job_ids, since),
            order_by=order,
            page_size=min(PAGE, most),
            max_results=most,
        )
        return list(map(line_of, found))

    def _note(self, lines: Iterable[LogLine]) -> None:
        self._seen |= {(line.insert_id, line.at): None for line in lines}
