"""Our own notices, as rules hear them: a run that ended, a champion that changed."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from trainmaster.orchestrator.core.documents.unvalidated import mapping_at
from trainmaster.orchestrator.core.errors import EventMalformed
from trainmaster.orchestrator.core.events.envelope import PubsubMessage, time_or
from trainmaster.orchestrator.core.notices.notice import CHAMPION_PROMOTED, PREFIX, RUN_PREFIX
from trainmaster.orchestrator.core.requests.arrival import Ignored
from trainmaster.orchestrator.core.retraining.rules.condition import ConditionKind, UpstreamEvent
from trainmaster.orchestrator.core.retraining.signals.signal import Signal, document_of, one_line
from trainmaster.orchestrator.core.runs.states import ENDS, RunState


@dataclass(frozen=True, kw_only=True)
class Heard:
    """What a notice tells: a signal that may fire rules, and the run that ended, where one did."""

    signal: Signal | None = None
    ended_run_id: str | None = None


def notice_in(message: PubsubMessage) -> Heard | Ignored:
    """What the notice, a structured CloudEvent of ours, means to rules.

    Raises:
        EventMalformed: the message holds no CloudEvent of ours.
    """
    event = document_of(message, "a notice")
    event_id, kind = event.get("id"), event.get("type")
    if not isinstance(event_id, str) or not isinstance(kind, str) or not kind.startswith(PREFIX):
        raise EventMalformed(
            f"message {message.message_id!r} is no notice of ours: its id is {event_id!r}, its type {kind!r}"
        )
    data = mapping_at(event, "data")
    at = time_or(event.get("time"), message.publish_time)
    if kind == CHAMPION_PROMOTED:
        return Heard(signal=_upstream(event_id, at, UpstreamEvent.PROMOTED, data))
    if not kind.startswith(RUN_PREFIX):
        return Ignored(reason=f"a notice of type {kind!r} fires no rule")
    return _of_run(event_id, at, data)


def _of_run(event_id: str, at: datetime, data: Mapping[str, object]) -> Heard | Ignored:
    run_id, state = data.get("run_id"), data.get("state")
    if not isinstance(run_id, str) or not isinstance(state, str) or state not in set(RunState):
        raise EventMalformed(f"notice {event_id!r} tells of run {run_id!r} in state {state!r}")
    if state not in ENDS:
        return Ignored(reason=f"run {run_id!r} is {state}; only ends matter to rules")
    if state != RunState.SUCCEEDED or not isinstance(data.get("model_name"), str):
        return Heard(ended_run_id=run_id)
    return Heard(signal=_upstream(event_id, at, UpstreamEvent.SUCCEEDED, data), ended_run_id=run_id)


def _upstream(event_id: str, at: datetime, event: UpstreamEvent, data: Mapping[str, object]) -> Signal:
    model_name = data.get("model_name")
    if not isinstance(model_name, str):
        raise EventMalformed(f"notice {event_id!r} names no model")
    values = {f"upstream.{key}": data.get(key) for key in ("model_name", "run_id", "model_uri")}
    return Signal(
        kind=ConditionKind.UPSTREAM,
        id=f"notice/{one_line(event_id)}",
        at=at,
        facts={"model_name": model_name, "event": event},
        values={name: one_line(text) for name, text in values.items() if isinstance(text, str)},
    )
