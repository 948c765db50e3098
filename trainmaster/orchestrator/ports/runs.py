"""What the flow needs of the world, in the flow's own words; every error a port may raise is named.

Any of them may also raise ServiceFailed: the service did not answer, and a later delivery may fare better.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from trainmaster.orchestrator.core.champions.champion import Champion
from trainmaster.orchestrator.core.completion.outcome import ModelDirectory
from trainmaster.orchestrator.core.events.self_test import Answer
from trainmaster.orchestrator.core.names import JobKind
from trainmaster.orchestrator.core.notices.notice import Notice
from trainmaster.orchestrator.core.requests.submission import Submission
from trainmaster.orchestrator.core.retraining.rules.book import Book
from trainmaster.orchestrator.core.retraining.signals.arrival import ArrivedObject, Batch
from trainmaster.orchestrator.core.retraining.state import RuleState
from trainmaster.orchestrator.core.retraining.status import RuleStatus
from trainmaster.orchestrator.core.runs.job import Job
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.states import RunState


@dataclass(frozen=True, kw_only=True)
class Held:
    """A record as it was read, and the version that a replacement must name."""

    record: RunRecord
    version: int


@dataclass(frozen=True, kw_only=True)
class SubmittedObject:
    """Where a request lies as it was written, and the hash of that object."""

    uri: str
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Marker:
    """A run that has not ended, or whose notice is not out."""

    run_id: str
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class DropStatus:
    """Where the latest drop of one object name stands: schemas/drop_status.v1.schema.json.

    `record_generation` is that of the record it was made from, 0 for an order, which has none. `reason` is why the run
    waits, or why it failed.
    """

    dropped_name: str
    generation: int
    run_id: str
    state: RunState
    updated_at: datetime
    record_uri: str
    record_generation: int = 0
    reason: str | None = None
    report_uri: str | None = None
    model_uri: str | None = None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class HeldBook:
    """The rule book as it was read, and the version that a replacement must name."""

    book: Book
    version: int


@dataclass(frozen=True, kw_only=True)
class HeldState:
    """A rule's state as it was read, and the version that a replacement must name. Before the first: None, 0."""

    state: RuleState | None
    version: int


@dataclass(frozen=True, kw_only=True)
class DroppedRule:
    """A rule's file as it lies in the inbox."""

    name: str
    generation: int
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class HeldChampion:
    """A champion as it was read, and the version that a replacement must name. Before the first: None, 0."""

    champion: Champion | None
    version: int


class Ledger(Protocol):
    """The run records and what is kept beside them. Safe to use from several threads and processes at once."""

    def find(self, run_id: str) -> Held | None:
        """The record, or None when there is none.

        Raises:
            RecordDamaged: the object holds something else.
        """
        ...

    def create(self, record: RunRecord) -> Held:
        """The new record. An answer that was lost on its way, and then repeated, still counts as ours.

        Raises:
            RecordExists: another attempt wrote one first.
        """
        ...

    def replace(self, held: Held, record: RunRecord) -> Held:
        """The changed record, if it is still at `held.version`. As for `create`, a lost answer still counts.

        Raises:
            RecordMoved: another attempt changed it first.
        """
        ...

    def mark_active(self, run_id: str) -> None:
        """Put the run where the sweep looks. Safe to repeat."""
        ...

    def unmark(self, run_id: str) -> None:
        """Take the run from where the sweep looks. Safe to repeat."""
        ...

    def active(self) -> Iterator[Marker]:
        """Every marked run."""
        ...

    def swept_to(self) -> Marker | None:
        """The last run that a sweep without time for all came to; None when the last one came to the end."""
        ...

    def keep_swept_to(self, marker: Marker | None) -> None:
        """Keep it for the next sweep. Two sweeps at once may overwrite each other's: it is no more than a hint."""
        ...

    def tell_status(self, status: DropStatus) -> None:
        """Write where the drop stands, unless something later is written there.

        Later is a newer generation of the drop, or of the same drop's record. Safe to repeat, in any order.
        """
        ...

    def keep_submitted(self, run_id: str, document: Mapping[str, object]) -> SubmittedObject:
        """Keep the request as it was written. Safe to repeat: the same document is the same object."""
        ...

    def report(self, run_id: str, report: Mapping[str, object]) -> str:
        """Keep the rejection report and give its URI. Safe to repeat."""
        ...

    def unreport(self, run_id: str) -> None:
        """Remove the rejection report. Safe to repeat."""
        ...

    def record_uri(self, run_id: str) -> str:
        """Where the record lies."""
        ...


class Inbox(Protocol):
    """What users dropped."""

    def read(self, bucket: str, name: str, generation: int) -> bytes:
        """The content of that very generation.

        Raises:
            ObjectGone: it was deleted or written over.
        """
        ...

    def latest(self, bucket: str, name: str) -> tuple[bytes, int]:
        """The content as it is now, and its generation.

        Raises:
            ObjectGone: there is none.
        """
        ...

    def rules(self) -> Sequence[DroppedRule]:
        """Every file that the inbox takes for a rule."""
        ...


class RuleBook(Protocol):
    """Every accepted rule, in one object."""

    def read(self) -> HeldBook:
        """The book; empty before the first rule.

        Raises:
            DocumentDamaged: the object holds something else.
        """
        ...

    def replace(self, held: HeldBook, book: Book) -> HeldBook:
        """The changed book, if it is still at `held.version`.

        Raises:
            GenerationMoved: another attempt changed it first.
        """
        ...


class RuleStates(Protocol):
    """What each rule remembers."""

    def read(self, rule_id: str) -> HeldState:
        """The state of a rule.

        Raises:
            DocumentDamaged: the object holds something else.
        """
        ...

    def replace(self, held: HeldState, state: RuleState) -> HeldState:
        """The changed state, if it is still at `held.version`.

        A write whose answer was lost counts as moved: what was decided is on record, and whoever looks next
        finds it.

        Raises:
            GenerationMoved: another attempt changed it first.
        """
        ...


class RuleStatuses(Protocol):
    """What users are told of their rules."""

    def find(self, dropped_name: str) -> RuleStatus | None:
        """What is told of the drop of this name; None where nothing is, or nothing that can be read."""
        ...

    def tell(self, status: RuleStatus) -> None:
        """Write it, unless something of a newer generation, or later, is written there. Safe to repeat."""
        ...


class ArrivalLog(Protocol):
    """Where arrivals are kept until a tick counts them."""

    def append(self, arrival: ArrivedObject) -> int:
        """Return once the arrival is durable: how many were made so together, by whoever did it, else 0.

        Raises:
            ServiceFailed: it may or may not be durable. Appending it again is safe: it is counted once.
        """
        ...


class Arrivals(Protocol):
    """The batches that the log has written, from all its processes."""

    def names(self, most: int) -> Sequence[str]:
        """At most so many batches, oldest first. Every batch that was answered before is among all of them."""
        ...

    def read(self, names: Sequence[str]) -> Sequence[Batch]:
        """These batches; one that is gone is left out, and one that cannot be read holds no arrivals."""
        ...

    def delete(self, names: Sequence[str]) -> None:
        """Remove the batches. Safe to repeat."""
        ...


class Champions(Protocol):
    """The best model under each name."""

    def find(self, model_name: str) -> HeldChampion:
        """The champion of that name.

        Raises:
            DocumentDamaged: the object holds something else.
        """
        ...

    def replace(self, held: HeldChampion, champion: Champion) -> HeldChampion:
        """The changed document, if it is still at `held.version`.

        A write whose answer was lost counts as moved: whoever looks next finds it done.

        Raises:
            GenerationMoved: another attempt changed it first.
        """
        ...

    def uri(self, model_name: str) -> str:
        """Where the document lies."""
        ...


class SelfTests(Protocol):
    """Where self-tests of the deployment are answered."""

    def answer(self, answer: Answer) -> str:
        """The answer's URI, once it is written. Safe to repeat: the first answer under an id stands.

        Answers older than a day are removed meanwhile.
        """
        ...


class Models(Protocol):
    """What trainers left behind."""

    def look(self, model_uri: str) -> ModelDirectory:
        """The files under the `gs://…/` directory, and its manifest where there is one of decent size."""
        ...


class TrainingJobs(Protocol):
    """Vertex AI's jobs, in one project and the regions of the deployment."""

    def submit(self, submission: Submission) -> Job:
        """Create the job, in the region that the submission's parent names. Not idempotent: whoever repeats it gets a second job.

        Raises:
            SubmissionRefused: the service will never take it.
            SubmissionDeferred: the service has no room now; no job was created.
            SubmissionUnknown: there may be a job; look with `of_run` before trying again.
        """
        ...

    def of_run(self, run_id: str, kind: JobKind, regions: Sequence[str]) -> Sequence[Job]:
        """The jobs of one kind in these regions labelled with the run, oldest first. Their trials are not read."""
        ...

    def read(self, name: str) -> Job:
        """The job as it is now.

        Raises:
            JobNotFound: there is none of that name.
        """
        ...

    def cancel(self, name: str) -> None:
        """Ask for the job's end; its state tells when. A job that has ended, or is none, stays as it is."""
        ...

    def with_id(self, job_id: str) -> Job:
        """The job of this project, of whatever region and kind: log entries do not tell the kind.

        Raises:
            JobNotFound: there is none of that id.
        """
        ...


class Notices(Protocol):
    """Where runs, champions and rules are told of."""

    def publish(self, notice: Notice) -> None:
        """Tell it; returns once the service has it. Subscribers may see it more than once."""
        ...


class Clock(Protocol):
    def now(self) -> datetime:
        """The time, aware, in UTC."""
        ...
