"""A run is shown to users: by its row in the index, the status of its drop or message, and a notice for every state.

The row is written before the status, so a status that shows a version of the record proves that the row does, too: a
duplicate event reads only the status. A reserved run has no row until its submission is answered, which spares most runs
a second write within a second; the reconciler adds the row of one that takes longer.

The notice of a state before the end is published before the record shows that state: the job already exists or runs,
and after a crash between the two the notice is published again. The notice of an end follows the record
(`finish.py`), because only the record makes the end final.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from trainmaster.orchestrator.core.admission.index_row import index_row_of
from trainmaster.orchestrator.core.errors import GenerationMoved, LeaseHeld, RecordMoved, TrainmasterError
from trainmaster.orchestrator.core.notices.notice import run_entered
from trainmaster.orchestrator.core.requests.incoming import Ignored, IncomingDocument
from trainmaster.orchestrator.core.runs import drop_status
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.flows.services import FlowResult, Services
from trainmaster.orchestrator.stores.ledger import Held


def show(services: Services, held: Held) -> None:
    """Write the run's row in the index, then its status. Safe to repeat."""
    write_row(services, held)
    write_status(services, held)


def show_again(services: Services, held: Held) -> None:
    """The same for a version of the record that another attempt has most likely shown: costs one read then."""
    status = _status_of(services, held)
    if status is None or not services.drop_statuses.shows(status):
        show(services, held)


def write_row(services: Services, held: Held) -> None:
    """Write the run's row in the index. Safe to repeat, in any order: it never returns to an older record.

    A refused order is not a run, and has none.
    """
    record, waiting = held.record, held.record.admission.waiting
    if record.state is not RunState.RESERVED and not record.is_order:
        # A run that has just left its first state, or was rejected, most likely has no row yet.
        is_first = len(record.history) <= 2 and (waiting is None or waiting.attempts <= 1)  # noqa: PLR2004
        services.index.put(index_row_of(record, held.version), is_first=is_first)


def add_row(services: Services, held: Held) -> None:
    """Write the row of a reserved run, which most likely has none. Safe to repeat."""
    services.index.put(index_row_of(held.record, held.version), is_first=True)


def write_status(services: Services, held: Held, *, is_explained: bool = True) -> None:
    """Write the record's status for the drop or message. Safe to repeat; a rule's run has none.

    `is_explained` False: the job's log has not been read yet.
    """
    status = _status_of(services, held)
    if status is not None and not is_explained:
        reason = f"{status.reason} (the reason will appear here once its log has been read)"
        status = replace(status, reason=reason)
    if status is not None:
        services.drop_statuses.write(status)


def _status_of(services: Services, held: Held) -> drop_status.DropStatus | None:
    record_uri = services.ledger.record_uri(held.record.run_id)
    return drop_status.status_of_run(held.record, held.version, record_uri, services.target.project)


def with_warnings(result: FlowResult, problems: Sequence[str]) -> FlowResult:
    """The log line with these problems."""
    if not problems:
        return result
    message = "; ".join((result.message, *(f"warning: {problem}" for problem in problems)))
    severity = "WARNING" if result.severity == "INFO" else result.severity
    return replace(result, message=message, severity=severity)


def write_order_status(
    services: Services,
    incoming: IncomingDocument,
    *,
    about_uri: str,
    model_uri: str | None = None,
    held: str | None = None,
) -> None:
    """Report that an order was carried out, and where the result is. Safe to repeat: the first status stays.

    `held`: why the rule that the order should fire is held back.
    """
    state = RunState.SUCCEEDED if held is None else drop_status.HELD
    status = drop_status.status_of_source(incoming.source, state, services.clock.now())
    if status is not None:
        result = replace(status, run_id=incoming.run_id, record_uri=about_uri, model_uri=model_uri)
        services.drop_statuses.write(replace(result, reason=held))


def write_ignored_status(services: Services, ignored: Ignored) -> None:
    """Report that a file is ignored, and what to do. Safe to repeat."""
    if ignored.dropped is not None:
        status = drop_status.DropStatus(
            dropped_name=ignored.dropped.name,
            generation=ignored.dropped.generation,
            state=drop_status.IGNORED,
            reason=ignored.reason,
            run_id=ignored.run_id,
            updated_at=services.clock.now(),
        )
        services.drop_statuses.write(status)


@contextmanager
def failures_in_status(services: Services, incoming: IncomingDocument) -> Iterator[None]:
    """If the body fails, the status says so: otherwise a drop whose event keeps failing would have no status.

    Losing to another attempt is not a failure. If the status cannot be written either, the log has the error.
    """
    try:
        yield
    except (LeaseHeld, RecordMoved, GenerationMoved):
        raise
    except Exception as error:
        status = drop_status.status_of_source(incoming.source, drop_status.RETRYING, services.clock.now())
        if status is not None:
            with suppress(TrainmasterError):
                services.drop_statuses.write_failure(status, incoming.source, error)
        raise


def publish_states(services: Services, before: RunRecord, after: RunRecord) -> None:
    """Publish the states that `after` enters: before the record is written, unless the run has ended.

    `reserved` is published with the next state: until then there is nothing to report but a lease.
    """
    uri = services.ledger.record_uri(after.run_id)
    for number, step in enumerate(after.history):
        if number >= len(before.history) or before.state is step.state is RunState.RESERVED:
            services.notices.publish(run_entered(after, number, uri))
