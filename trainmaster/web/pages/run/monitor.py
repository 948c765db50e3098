"""All that a page shows of one run, kept current by reading only what is new."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from trainmaster.client.find import Run, read_run
from trainmaster.client.logs.line import LogLine, shortened_line
from trainmaster.client.logs.read import pool_sizes
from trainmaster.client.runs.facts import candidate_of
from trainmaster.client.watch.curves import Chart, Curves
from trainmaster.client.watch.lanes import Lane, LaneState, ReplicaLanes
from trainmaster.client.watch.sighting import FIRST_LINES, RunWatch, Sighting
from trainmaster.orchestrator.core.completion.steps import all_over
from trainmaster.orchestrator.core.runs.job import TrialState
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.web.pages.run.log_pages import PAGE_LINES, LogPage, tail_page

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients

QUICK_LINES = 500
_ENDS = {"JOB_STATE_SUCCEEDED": LaneState.DONE, "JOB_STATE_CANCELLED": LaneState.CANCELLED}
STEPS_WITHIN = timedelta(minutes=2)
"""After a run's end; a step that takes longer is not waited for."""


@dataclass(frozen=True, kw_only=True)
class Monitored:
    """A run as it is now. Everything in it is bounded."""

    seen: Sighting
    lanes: Sequence[Lane]
    charts: Sequence[Chart]
    log: LogPage
    """The end of the log."""
    is_partial: bool
    """Whether the lanes and curves lack the beginning of a long log."""
    is_over: bool
    """It will not change any more."""

    @property
    def run(self) -> Run:
        return self.seen.run


class RunMonitor:
    """Every call of `look` reads what has changed. Not for two threads at once."""

    def __init__(self, clients: "Clients", run: Run) -> None:
        self._clients = clients
        self._last: Monitored | None = None
        self._begin(run, QUICK_LINES)

    def _begin(self, run: Run, lines: int) -> None:
        self._watch = RunWatch(self._clients, run, self._take, first_lines=lines)
        self._lanes, self._curves = ReplicaLanes(), Curves()
        self._tail = deque[LogLine](maxlen=PAGE_LINES + 1)  # one more tells that there are earlier ones
        self._is_partial, self._is_quick = False, lines < FIRST_LINES

    def look(self) -> Monitored:
        """The run as it is now; once it is over, nothing is read.

        Of a long log, the first look reads a small part, so that it returns soon; the second reads FIRST_LINES.

        Raises:
            NotFound: its record no longer exists.
            google.api_core.exceptions.GoogleAPICallError, requests.exceptions.RequestException: a service does not answer.
        """
        if self._last is None or not self._last.is_over:
            if self._last is not None and self._is_quick and self._is_partial:
                self._begin(self._last.run, FIRST_LINES)
            self._last = self._look()
        return self._last

    def _look(self) -> Monitored:
        log_is_over = self._watch.is_over
        seen = self._last.seen if log_is_over and self._last else self._watch.look()
        if seen.run.record.ended and not _is_settled(seen.run.record):
            seen = replace(seen, run=read_run(self._clients, seen.run.record.run_id))
        if seen.job_started_at is not None and seen.study is None:
            self._lanes.expect(_replicas(seen.run.record), seen.job_started_at)
        self._end_lanes(seen)
        is_whole = not (self._is_quick and self._is_partial)
        return Monitored(
            seen=seen,
            lanes=self._lanes.lanes,
            charts=self._curves.charts,
            log=tail_page(self._tail, has_earlier=self._is_partial),
            is_partial=self._is_partial,
            is_over=is_whole and self._watch.is_over and _is_settled(seen.run.record),
        )

    def _end_lanes(self, seen: Sighting) -> None:
        if seen.study is not None:
            ended = [trial for trial in seen.study.trials if trial.end_time is not None]
            self._lanes.end_trials(
                {each.id: (_end_of(each.state), each.end_time) for each in ended if each.end_time}
            )
        if seen.job_ended_at is not None:
            self._lanes.end(_ENDS.get(seen.job_state or "", LaneState.FAILED), seen.job_ended_at)

    def _take(self, lines: Sequence[LogLine], left_out: bool) -> None:
        self._is_partial = self._is_partial or left_out
        self._lanes.add(lines)
        self._curves.add(lines)
        self._tail.extend(shortened_line(line) for line in lines[-PAGE_LINES - 1 :])


def _end_of(state: TrialState) -> LaneState:
    return LaneState.DONE if state is TrialState.SUCCEEDED else LaneState.FAILED


def _is_settled(record: RunRecord) -> bool:
    """Whether the steps after the end are done, for example the comparison with the champion, or take too long."""
    if not record.ended:
        return False
    late = datetime.now(UTC) - record.history[-1].at > STEPS_WITHIN
    return late or record.state is RunState.REJECTED or all_over(record)


def _replicas(record: RunRecord) -> Iterator[str]:
    candidate = candidate_of(record)
    for pool, size in pool_sizes(candidate.spec.cluster) if candidate else ():
        yield from (f"{pool}-{number}" for number in range(size))
