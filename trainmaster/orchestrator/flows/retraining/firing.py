"""A decided firing becomes a run. The firing is on record first, so whoever finds it may do this again."""

from dataclasses import replace

from trainmaster.orchestrator.core.documents.faults import Fault
from trainmaster.orchestrator.core.errors import LeaseHeld, ObjectGone, SubmissionUnknown
from trainmaster.orchestrator.core.names import object_uri, split_object_uri
from trainmaster.orchestrator.core.requests.arrival import Arrival
from trainmaster.orchestrator.core.requests.reading import text_in
from trainmaster.orchestrator.core.requests.request import Refused
from trainmaster.orchestrator.core.retraining.request import request_of_firing
from trainmaster.orchestrator.core.retraining.rules.rule import Rule
from trainmaster.orchestrator.core.retraining.state import Firing
from trainmaster.orchestrator.core.runs.record import Source
from trainmaster.orchestrator.flows.services import Happened, Services
from trainmaster.orchestrator.flows.submission.cancel import cancel
from trainmaster.orchestrator.flows.submission.launch import take_request


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
    replaced = services.ledger.find(firing.replaces) if firing.replaces is not None else None
    leaves_place = replaced is not None and cancel(services, replaced).is_due
    what = f"{rule.rule_id} fired ({firing.condition}, number {firing.number})"
    try:
        arrival = Arrival(run_id=firing.run_id, source=source, content=content)
        happened = take_request(services, arrival, text_in(content, as_json=True))
    except LeaseHeld as error:
        return Happened(message=f"{what}: {error}", run_id=firing.run_id, severity="DEBUG")
    except SubmissionUnknown as error:
        # The run is reserved: from here on it is the sweep's, like every other.
        return Happened(message=f"{what}: {error}", run_id=firing.run_id, severity="WARNING")
    return replace(happened, message=f"{what}: {happened.message}", is_due=happened.is_due or leaves_place)


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
