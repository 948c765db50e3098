"""The Cloud Functions' entry points: parse an event into an envelope, call its flow, then acknowledge or retry.

Run one locally with
functions-framework --target on_request_uploaded --source functions/main.py --signature-type cloudevent
"""

import functools
import gc
import os
import traceback
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

import functions_framework
from cloudevents.http import CloudEvent
from werkzeug.exceptions import InternalServerError

from trainmaster.orchestrator import log
from trainmaster.orchestrator.core.completion.entry import parse_hint
from trainmaster.orchestrator.core.documents.codec import time_or
from trainmaster.orchestrator.core.errors import GenerationMoved, LeaseHeld, RecordMoved, TrainmasterError
from trainmaster.orchestrator.core.events.envelope import Envelope, event_key, pubsub_message
from trainmaster.orchestrator.core.events.self_test import parse_marked_entry
from trainmaster.orchestrator.core.requests.incoming import Ignored
from trainmaster.orchestrator.core.retraining.arrivals import parse_arrived_object
from trainmaster.orchestrator.core.retraining.signals import (
    Signal,
    parse_alert,
    parse_image_push,
    parse_notice,
)
from trainmaster.orchestrator.flows.intake import answer_entry, take_message, take_upload
from trainmaster.orchestrator.flows.notify import send_notice
from trainmaster.orchestrator.flows.queue_pass import complete_and_admit
from trainmaster.orchestrator.flows.retraining.events import take_notice, take_signal
from trainmaster.orchestrator.flows.scheduled import take_tick
from trainmaster.orchestrator.flows.services import FlowResult, Services
from trainmaster.orchestrator.settings import settings_from
from trainmaster.orchestrator.wiring import Wiring

# What is imported stays to the end. Collections that need not look at it take little time, and without this they are
# most of the time that a document of 1 MiB takes to read (bench/fuzz.py --slow).
gc.freeze()

Flow = Callable[[Envelope], Iterable[FlowResult]]
IN_FLIGHT = (LeaseHeld, RecordMoved, GenerationMoved)
"""Raised for a duplicate while another delivery of its event is being processed. This is not a failure."""


@functools.cache
def _wiring() -> Wiring:
    return Wiring(settings_from(os.environ))


def _services() -> Services:
    return _wiring().services()


def _entry_point(flow: Flow) -> Callable[[CloudEvent], None]:
    """The function of that name. It returns to acknowledge the event, and raises to have it redelivered.

    The error's `retryable` decides. Any other exception is a bug in this program: it is raised too, so that the
    event is not lost.
    """

    @functools.wraps(flow)
    def handle(event: CloudEvent) -> None:
        envelope = _envelope(event)
        context = {"entry_point": flow.__name__, "event_id": envelope.id}
        try:
            for result in flow(envelope):
                log.line(
                    result.severity,
                    result.message,
                    run_id=result.run_id,
                    receiver=result.receiver,
                    event=result.event,
                    **context,
                )
        except Exception as error:
            known = isinstance(error, TrainmasterError)
            retryable = not isinstance(error, TrainmasterError) or error.retryable
            severity = ("WARNING" if retryable else "ERROR") if known else "CRITICAL"
            message = str(error) if known else traceback.format_exc()
            # If the event becomes a dead letter, its key finds this line.
            log.line(severity, message, error=type(error).__name__, event_key=event_key(envelope), **context)
            if isinstance(error, IN_FLIGHT):
                # The framework treats this error like any other, but logs no traceback for it.
                raise InternalServerError(original_exception=error) from None
            if retryable:
                raise

    entry_point: Callable[[CloudEvent], None] = functions_framework.cloud_event(handle)
    return entry_point


@_entry_point
def on_request_uploaded(envelope: Envelope) -> Iterable[FlowResult]:
    """A file was uploaded to the inbox."""
    return take_upload(_services(), envelope)


@_entry_point
def on_request_published(envelope: Envelope) -> Iterable[FlowResult]:
    """A request was published as a message."""
    return take_message(_services(), envelope)


@_entry_point
def on_job_log(envelope: Envelope) -> Iterable[FlowResult]:
    """The sink delivered a log entry of a job."""
    message = pubsub_message(envelope)
    marked = parse_marked_entry(message)
    if marked is not None:
        return [answer_entry(_services(), marked)]
    hint = parse_hint(message)
    if hint is None:
        return [FlowResult(message="ignored: the entry is not about a training job")]
    return complete_and_admit(_services(), hint)


@_entry_point
def on_tick(_: Envelope) -> Iterable[FlowResult]:
    """The schedule: find what no event reported, then run the rules that are due."""
    return take_tick(_services())


@_entry_point
def on_data_arrived(envelope: Envelope) -> Iterable[FlowResult]:
    """An object was finalized in a bucket that rules watch."""
    arrival, wiring = parse_arrived_object(envelope), _wiring()
    if arrival.bucket in (wiring.settings.buckets.inbox, wiring.settings.buckets.ledger):
        # Arrivals are recorded in the ledger bucket: each record's own event would cause another one, forever.
        return [FlowResult(message=f"ignored: rules cannot watch {arrival.bucket!r}", severity="WARNING")]
    if not arrival.is_data:
        return []  # a line of the log for each would cost more than the event
    kept = wiring.arrival_log.append(arrival)
    # One line for each batch: a line for each event would cost more than handling the event.
    return [FlowResult(message=f"arrivals recorded: {kept}", severity="DEBUG")] if kept else []


@_entry_point
def on_image_pushed(envelope: Envelope) -> Iterable[FlowResult]:
    """Artifact Registry reported an image."""
    return _signalled(parse_image_push(pubsub_message(envelope)))


@_entry_point
def on_alert(envelope: Envelope) -> Iterable[FlowResult]:
    """Cloud Monitoring sent an alert."""
    return _signalled(parse_alert(pubsub_message(envelope)))


@_entry_point
def on_notice(envelope: Envelope) -> Iterable[FlowResult]:
    """One of this service's notices. Rules of other models, and firings queued behind a run, may wait for it."""
    parsed = parse_notice(pubsub_message(envelope))
    if isinstance(parsed, Ignored):
        return [FlowResult(message=f"ignored: {parsed.reason}", severity="DEBUG")]
    return take_notice(_services(), parsed)


@_entry_point
def on_notice_out(envelope: Envelope) -> Iterable[FlowResult]:
    """The same notice, for the policy's receivers outside Google Cloud."""
    return send_notice(_services(), _wiring().receivers, pubsub_message(envelope))


def _signalled(parsed: Signal | Ignored) -> Iterable[FlowResult]:
    if isinstance(parsed, Ignored):
        return [FlowResult(message=f"ignored: {parsed.reason}", severity=parsed.severity)]
    return take_signal(_services(), parsed)


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
