"""A decided firing becomes a run. The firing is on record first, so whoever finds it may do this again."""

from dataclasses import replace

from orchestrator.core.errors import LeaseHeld, ObjectGone, SubmissionUnknown
from orchestrator.core.faults import Fault
from orchestrator.core.launch.event import Arrival
from orchestrator.core.launch.request import Refused
from orchestrator.core.names import object_uri, split_object_uri
from orchestrator.core.retrain.request import request_of_firing
from orchestrator.core.retrain.rule import Rule
from orchestrator.core.retrain.state import Firing
from orchestrator.core.run import RunState, Source, moved
from orchestrator.flow.launch import launch
from orchestrator.flow.services import Happened, Services
from orchestrator.flow.telling import tell_end
from orchestrator.ports import Held


def launch_firing(services: Services, rule: Rule, firing: Firing) -> Happened | Refused:
    """The run of the firing, launched once however often this is repeated; or why there can be none.

    Raises:
        LeaseHeld: the run to be replaced is being submitted at this moment.
        ServiceFailed, RecordMoved: the firing stays; a later tick repeats it.
    """
    if services.ledger.find(firing.run_id) is not None:
        return Happened(
            message=f"firing {firing.number} of {rule.rule_id} is on record", run_id=firing.run_id
        )
    source = _source(services, rule, firing)
    template: bytes | None = None
    if rule.request_uri is not None:
        try:
            template, generation = services.inbox.latest(*split_object_uri(rule.request_uri))
        except ObjectGone as gone:
            return Refused(faults=(Fault(path="$.request_uri", problem=str(gone)),))
        source = replace(source, template_uri=rule.request_uri, template_generation=generation)
    content = request_of_firing(rule, firing, template)
    if isinstance(content, Refused):
        return content
    if firing.replaces is not None:
        _cancel(services, firing.replaces)
    what = f"{rule.rule_id} fired ({firing.condition}, number {firing.number})"
    try:
        happened = launch(services, Arrival(run_id=firing.run_id, source=source, content=content))
    except LeaseHeld as error:
        return Happened(message=f"{what}: {error}", run_id=firing.run_id, severity="DEBUG")
    except SubmissionUnknown as error:
        # The run is reserved: from here on it is the sweep's, like every other.
        return Happened(message=f"{what}: {error}", run_id=firing.run_id, severity="WARNING")
    return replace(happened, message=f"{what}: {happened.message}")


def _source(services: Services, rule: Rule, firing: Firing) -> Source:
    return Source(
        kind="rule",
        event_id=firing.event_id,
        event_time=firing.at,
        received_at=services.clock.now(),
        uri=object_uri(services.buckets.inbox, rule.dropped_name),
        generation=firing.generation,
        rule_id=rule.rule_id,
        firing=firing.number,
        condition=firing.condition.value,
    )


def _cancel(services: Services, run_id: str) -> None:
    """End the run that is to be replaced. Safe to repeat, and for a run that has ended.

    Raises:
        LeaseHeld: whether it has a job is not known before its lease ends.
        RecordMoved: it has just changed.
    """
    held = services.ledger.find(run_id)
    if held is None or held.record.ended:
        return
    record = held.record
    if record.job is not None:
        services.jobs.cancel(record.job.name)
    elif record.lease is not None:
        raise LeaseHeld(run_id, record.lease.expires_at)
    else:
        _end_without_job(services, held)


def _end_without_job(services: Services, held: Held) -> None:
    now = services.clock.now()
    cancelled = moved(held.record, RunState.CANCELLED, entered_at=now, now=now, attempt=services.attempt)
    services.ledger.replace(held, cancelled)
    tell_end(services, cancelled, held.record)
