"""A run at one moment, as its services report it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from trainmaster.client.clients import Clients
from trainmaster.client.find import Run
from trainmaster.client.logs.follow import RunLog
from trainmaster.client.logs.line import SERVICE, LogLine, shortened_line
from trainmaster.client.logs.progress import TrainingProgress
from trainmaster.client.study.read import study_of
from trainmaster.client.study.study import Study
from trainmaster.client.times import moment_of
from trainmaster.client.watch.machines import MachinesNow, MachinesWatch
from trainmaster.orchestrator.core.job_names import JobKind, job_id, job_kind
from trainmaster.orchestrator.core.runs.job import RecordedJob

FIRST_LINES = 10_000
"""How much of a log that exists already is read: enough for the last progress of every replica."""
LINES_KEPT = 100
_WARNINGS = frozenset({"WARNING", "ERROR", "CRITICAL", "ALERT", "EMERGENCY"})


@dataclass(frozen=True, kw_only=True)
class Sighting:
    """What is known of a run at one moment; absent parts have not happened yet."""

    run: Run
    at: datetime
    job_state: str | None = None
    job_started_at: datetime | None = None
    job_ended_at: datetime | None = None
    exported_at: datetime | None = None
    exported_to: str = ""
    last_line_at: datetime | None = None
    """When the service logged that the job has ended."""
    service_lines: tuple[str, ...] = ()
    """The last lines of the service: what the job waits for, and which packages are installed, before its program starts.

    Those about a trial begin with `trial 3: `, and so do the warnings.
    """
    warnings: tuple[str, ...] = ()
    """The service's last warnings, for example that packages are installed although no RUN line names them."""
    last_lines: Mapping[str, str] = field(default_factory=dict)
    """The last line of each replica that logs no progress that could be drawn; of a trial's, with the trial's id in front."""
    training: TrainingProgress = field(default_factory=TrainingProgress)
    study: Study | None = None
    parallel_trials: int = 1
    machines: MachinesNow = field(default_factory=MachinesNow)

    @property
    def service_line(self) -> str:
        """The last line of the service; empty before the first."""
        return self.service_lines[-1] if self.service_lines else ""

    @property
    def job_name(self) -> str:
        """The job's resource name; empty before there is one."""
        return self.run.record.job.name if self.run.record.job else ""


class RunWatch:
    """Every call of `look` reads what has changed."""

    def __init__(
        self,
        clients: Clients,
        run: Run,
        on_lines: Callable[[Sequence[LogLine], bool], object] = lambda _lines, _left_out: None,
        *,
        first_lines: int = FIRST_LINES,
    ) -> None:
        """`on_lines` gets the lines of each look, and whether earlier ones exist that no look reads.

        Of a log that exists already, the last `first_lines` are read.
        """
        self._clients = clients
        self._on_lines, self._first_lines = on_lines, first_lines
        self._log = RunLog(clients, run)
        self._machines = MachinesWatch(clients)
        self._seen = Sighting(run=run, at=datetime.now(UTC))
        self._has_begun = False

    @property
    def is_over(self) -> bool:
        """Whether the run has ended, and nothing more is expected."""
        return self._has_begun and self._log.is_over

    def look(self) -> Sighting:
        """The run as it is now.

        Raises:
            NotFound: its record no longer exists.
            google.api_core.exceptions.GoogleAPICallError, requests.exceptions.RequestException: a service does not answer.
        """
        lines, left_out = (self._log.look(), False) if self._has_begun else self._log.last(self._first_lines)
        self._has_begun = True
        self._on_lines(lines, left_out)
        at, run = datetime.now(UTC), self._log.run
        self._seen = replace(self._seen, run=run, at=at, machines=self._machines.look(run.record, at))
        for line in lines:
            self._seen = sighting_after(self._seen, line)
        recorded = self._seen.run.record.job
        if recorded is not None:
            self._seen = self._with_job(self._seen, recorded)
        else:  # before the first job, or between two
            self._seen = replace(self._seen, job_state=None, job_started_at=None, job_ended_at=None)
        return self._seen

    def _with_job(self, seen: Sighting, recorded: RecordedJob) -> Sighting:
        """`seen` with the job from the service, or from the record if the service has deleted it."""
        from google.api_core.exceptions import NotFound

        try:
            job = self._clients.read_job(recorded.name)
        except NotFound:
            started, ended = recorded.start_time, recorded.end_time
            return replace(seen, job_state=str(recorded.state), job_started_at=started, job_ended_at=ended)
        seen = replace(
            seen,
            job_state=job.state.name,
            job_started_at=moment_of(job.start_time),
            job_ended_at=moment_of(job.end_time),
        )
        if job_kind(recorded.name) is not JobKind.TUNING:
            return seen
        return replace(seen, study=study_of(job), parallel_trials=job.parallel_trial_count)


def sighting_after(seen: Sighting, line: LogLine) -> Sighting:
    """What is known after this line; of its text the first LINE_MAX_CHARS are kept."""
    text = shortened_line(line).text
    if line.replica == SERVICE:
        return _after_service(seen, line, text)
    if not line.reports and (line.lane in seen.last_lines or len(seen.last_lines) < LINES_KEPT):
        seen = replace(seen, last_lines={**seen.last_lines, line.lane: text})
    seen = replace(seen, training=seen.training.after(line))
    if isinstance(line.payload, Mapping) and line.payload.get("event") == "model_exported":
        return replace(seen, exported_at=line.at, exported_to=str(line.payload.get("model_path") or ""))
    return seen


def _after_service(seen: Sighting, line: LogLine, text: str) -> Sighting:
    if line.ends_job and seen.job_name and line.job_id == job_id(seen.job_name):
        seen = replace(seen, last_line_at=line.at)
    if line.trial_id:
        text = f"trial {line.trial_id}: {text}"
    if line.severity in _WARNINGS:
        seen = replace(seen, warnings=(*seen.warnings, text)[-LINES_KEPT:])
    return replace(seen, service_lines=(*seen.service_lines, text)[-LINES_KEPT:])
