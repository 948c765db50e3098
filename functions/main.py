"""The Cloud Functions' entry points: an envelope in, a flow called, and acknowledge or retry decided once.

Run one locally with
functions-framework --target on_request_uploaded --source functions/main.py --signature-type cloudevent
"""

import functools
import os
import traceback
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

import functions_framework
from cloudevents.http import CloudEvent

from trainmaster.orchestrator import log
from trainmaster.orchestrator.core.completion.entry import hint_in
from trainmaster.orchestrator.core.errors import TrainmasterError
from trainmaster.orchestrator.core.events.envelope import Envelope, pubsub_message, time_or
from trainmaster.orchestrator.core.events.event_key import event_key
from trainmaster.orchestrator.core.events.self_test import marked_entry_in
from trainmaster.orchestrator.core.requests.arrival import Ignored
from trainmaster.orchestrator.core.retraining.arrivals import arrived_in
from trainmaster.orchestrator.core.retraining.signals import Signal, alert_in, image_pushed_in, notice_in
from trainmaster.orchestrator.flows.intake import take_message, take_upload
from trainmaster.orchestrator.flows.retraining.triggers import take_notice, take_signal, tick
from trainmaster.orchestrator.flows.self_test import answer_entry
from trainmaster.orchestrator.flows.services import Happened
from trainmaster.orchestrator.flows.submission.queue_pass import settle_and_admit
from trainmaster.orchestrator.flows.sweep import sweep
from trainmaster.orchestrator.settings import settings_from
from trainmaster.orchestrator.wiring import Wiring


@functools.cache
def _wiring() -> Wiring:
    return Wiring(settings_from(os.environ))


@functions_framework.cloud_event  # type: ignore[untyped-decorator]  # the framework ships no types
def on_request_uploaded(event: CloudEvent) -> None:
    """A file arrived in the inbox."""
    _handle("on_request_uploaded", event, lambda envelope: take_upload(_wiring().services(), envelope))


@functions_framework.cloud_event  # type: ignore[untyped-decorator]  # the framework ships no types
def on_request_published(event: CloudEvent) -> None:
    """A request came as a message."""
    _handle("on_request_published", event, lambda envelope: take_message(_wiring().services(), envelope))


@functions_framework.cloud_event  # type: ignore[untyped-decorator]  # the framework ships no types
def on_job_log(event: CloudEvent) -> None:
    """The sink delivered a log entry of a job."""
    _handle("on_job_log", event, _logged)


@functions_framework.cloud_event  # type: ignore[untyped-decorator]  # the framework ships no types
def on_tick(event: CloudEvent) -> None:
    """The schedule asks what no event told, and what rules are due."""
    _handle("on_tick", event, _ticked)


@functions_framework.cloud_event  # type: ignore[untyped-decorator]  # the framework ships no types
def on_data_arrived(event: CloudEvent) -> None:
    """An object was finalized in a bucket that rules watch."""
    _handle("on_data_arrived", event, _data_arrived)


@functions_framework.cloud_event  # type: ignore[untyped-decorator]  # the framework ships no types
def on_image_pushed(event: CloudEvent) -> None:
    """Artifact Registry tells of an image."""
    _handle("on_image_pushed", event, lambda envelope: _signalled(image_pushed_in(pubsub_message(envelope))))


@functions_framework.cloud_event  # type: ignore[untyped-decorator]  # the framework ships no types
def on_alert(event: CloudEvent) -> None:
    """Cloud Monitoring or Model Monitoring raised an alert."""
    _handle("on_alert", event, lambda envelope: _signalled(alert_in(pubsub_message(envelope))))


@functions_framework.cloud_event  # type: ignore[untyped-decorator]  # the framework ships no types
def on_notice(event: CloudEvent) -> None:
    """One of our own notices: other models' rules may wait for it, and queued firings for the end of a run."""
    _handle("on_notice", event, _noticed)


def _ticked(_: Envelope) -> Iterable[Happened]:
    services = _wiring().services()
    yield from sweep(services)  # first: a run that ended makes room for its rule's next
    yield from tick(services)


def _data_arrived(envelope: Envelope) -> Iterable[Happened]:
    arrival, wiring = arrived_in(envelope), _wiring()
    if arrival.bucket in (wiring.settings.inbox_bucket, wiring.settings.ledger_bucket):
        # What is kept about an arrival lies in the ledger: its event would tell of itself for ever.
        return [Happened(message=f"ignored: no rule may watch {arrival.bucket!r}", severity="WARNING")]
    kept = wiring.arrival_log.append(arrival)
    # One line for each batch: a line for each event would cost more than the event.
    return [Happened(message=f"arrivals kept: {kept}", severity="DEBUG")] if kept else []


def _signalled(heard: Signal | Ignored) -> Iterable[Happened]:
    if isinstance(heard, Ignored):
        return [Happened(message=f"ignored: {heard.reason}")]
    return take_signal(_wiring().services(), heard)


def _noticed(envelope: Envelope) -> Iterable[Happened]:
    heard = notice_in(pubsub_message(envelope))
    if isinstance(heard, Ignored):
        return [Happened(message=f"ignored: {heard.reason}", severity="DEBUG")]
    return take_notice(_wiring().services(), heard)


def _logged(envelope: Envelope) -> Iterable[Happened]:
    message = pubsub_message(envelope)
    marked = marked_entry_in(message)
    if marked is not None:
        return [answer_entry(_wiring().services(), marked)]
    hint = hint_in(message)
    if hint is None:
        return [Happened(message="ignored: the entry is about no training job")]
    return settle_and_admit(_wiring().services(), hint)


def _handle(entry_point: str, event: CloudEvent, flow: Callable[[Envelope], Iterable[Happened]]) -> None:
    """Return to acknowledge the event, raise to have it delivered again: the error's own `retryable` says which.

    An error that nobody named is raised too: it is a mistake in this program, and the event must not be lost.
    The line of an error bears the event's key: should the event become a dead letter, it is found by that.
    """
    envelope = _envelope(event)
    try:
        for happened in flow(envelope):
            log.line(
                happened.severity,
                happened.message,
                run_id=happened.run_id,
                entry_point=entry_point,
                event_id=envelope.id,
            )
    except TrainmasterError as error:
        severity = "WARNING" if error.retryable else "ERROR"
        kind = type(error).__name__
        _failed(severity, str(error), kind, entry_point, envelope)
        if error.retryable:
            raise
    except Exception as error:
        _failed("CRITICAL", traceback.format_exc(), type(error).__name__, entry_point, envelope)
        raise


def _failed(severity: str, message: str, error: str, entry_point: str, envelope: Envelope) -> None:
    log.line(
        severity,
        message,
        error=error,
        entry_point=entry_point,
        event_id=envelope.id,
        event_key=event_key(envelope),
    )


def _envelope(event: CloudEvent) -> Envelope:
    attributes = event.get_attributes()
    received_at = datetime.now(UTC)
    return Envelope(
        id=str(attributes["id"]),
        type=str(attributes["type"]),
        source=str(attributes["source"]),
        subject=str(attributes.get("subject") or ""),
        time=time_or(attributes.get("time"), received_at),
        received_at=received_at,
        data=event.get_data(),
    )
