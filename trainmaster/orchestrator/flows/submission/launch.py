"""A request becomes a recorded run: reserved, and submitted at once if there is room; or rejected.

The order of writes, and what a crash between two of them leaves:

    mark      counts the run, if the policy has caps
    marker    the reconciler will check it; without a record it finds nothing, and the event is redelivered
    original  the text as it was written, under a name with its hash: no record names it yet
    record    reserved, with a lease: until it expires no other attempt submits
    status    reserved: the user sees it at once, however long the submission takes; `submit.py` continues

The runs of a matrix have one mark, and are launched one after the other, the first one last. Only its status is that of
the event, so a crash between two leaves none: the redelivery finds the runs that are there, and launches the others.
If their file or the policy has changed meanwhile, each of the others becomes a rejected run that names them.

Caps turn a storm of requests into one clear refusal. Each run is counted by its own mark. The marks of the day are read
before the mark is written and again afterwards: all attempts see the marks in the same order, so they agree on which
runs exceed a cap. A redelivery that finds its own mark is not counted twice; on a later day it counts there too: fewer
runs may start than the cap allows, never more. The last step after a run's end writes a second mark, with what the run
cost: runs that are marked later count that in place of the maximum.

The hour is the one in the mark's name, by the clock of the attempt that wrote it, so all readers agree on it; the
store's clock, which orders the marks, may already be in the next hour.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from trainmaster.orchestrator.core.admission.caps import CapReached, CountedStart, over_cap
from trainmaster.orchestrator.core.admission.cost import with_price
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.documents.document import Document
from trainmaster.orchestrator.core.documents.faults import Fault, Refused, json_path, listed, refusal_of
from trainmaster.orchestrator.core.errors import RecordExists, TrainmasterError
from trainmaster.orchestrator.core.names import model_name_from, stem
from trainmaster.orchestrator.core.requests.checks.matrix import OF_RULE
from trainmaster.orchestrator.core.requests.incoming import IncomingDocument, submitted_document
from trainmaster.orchestrator.core.requests.matrix import MATRIX, run_documents
from trainmaster.orchestrator.core.requests.placeholders import CHAMPION, starts_in, with_models
from trainmaster.orchestrator.core.requests.reading import checked_request, with_places
from trainmaster.orchestrator.core.requests.request import Request
from trainmaster.orchestrator.core.requests.spec import spec_from
from trainmaster.orchestrator.core.runs.drop_status import first_faults
from trainmaster.orchestrator.core.runs.end import Rejection
from trainmaster.orchestrator.core.runs.record import (
    AcceptedRequest,
    Lease,
    Original,
    RunGroup,
    RunRecord,
    Step,
    SubmissionState,
)
from trainmaster.orchestrator.core.runs.same_request import is_key_reused
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.flows.lifecycle.status import show, with_warnings, write_status
from trainmaster.orchestrator.flows.services import FlowResult, Services
from trainmaster.orchestrator.flows.submission.resume import resume
from trainmaster.orchestrator.flows.submission.submit import submit
from trainmaster.orchestrator.stores.ledger import Held

ACCEPTED_SHOWN = 5


def take_request(services: Services, incoming: IncomingDocument, read: Document) -> FlowResult:
    """Check the request in the document, and launch its run or reject it. See `launch`."""
    request = _check_incoming(services, incoming, read)
    if not isinstance(request, Refused):
        return launch(services, incoming, request, read)
    has_matrix = isinstance(read.value, Mapping) and MATRIX in read.value
    return (reject_rest if has_matrix else reject)(services, incoming, request)


def is_launchable(services: Services, incoming: IncomingDocument, read: Document) -> bool:
    """Whether neither the checks nor a cap, which counts the run from now on, reject it: `take_request` will launch it."""
    request = _check_incoming(services, incoming, read)
    return isinstance(request, Request) and _over_caps(services, incoming.run_id, request) is None


def _check_incoming(services: Services, incoming: IncomingDocument, read: Document) -> Request | Refused:
    dropped, source = incoming.source.object_name, incoming.source
    name = None if dropped is None else model_name_from(stem(dropped))
    request = check_request(services, read, source.team, found=dropped or source.kind, name=name)
    is_refused = source.rule_id is not None and isinstance(request, Request) and MATRIX in request.document
    return Refused(faults=(OF_RULE,)) if is_refused else request


def check_request(
    services: Services, read: Document, team: str | None, *, found: str, name: str | None = None
) -> Request | Refused:
    """The team's request in the document, with its price, or every fault at its place.

    `found` is where it came from, and `name` is for a model without one.
    """
    request_rules = services.request_rules().of_team(team, found)
    if isinstance(request_rules, Refused):
        return request_rules
    request = checked_request(read, request_rules, name=name)
    priced = with_price(request, request_rules.policy, services.prices)
    if not isinstance(priced, Refused) and "start_from" in read.text.replace("-", "_"):  # as in few requests
        priced = _with_starting_models(services, priced, team)
    return with_places(priced, read, request_rules.policy)


def _with_starting_models(services: Services, request: Request, team: str | None) -> Request | Refused:
    """The request with the URIs of the team's models that it starts from; a warning where there is no champion yet."""
    uris, faults, warnings = dict[str, str | None](), list[Fault](), list[Fault]()
    name = request.spec.model_name
    for path, indexes, value in starts_in(request.document):
        at = request.written_path(json_path((*path, indexes[-1])))
        if value == CHAMPION:
            champion = services.champions.find(name, team)
            uris[value] = champion.current.model_uri if champion and champion.current else None
            problem = f"{name} has no champion yet, so the run starts from the model as built"
            fault, problems = Fault(path=at, problem=problem, value=value), warnings
        else:
            held = services.ledger.find(value)
            model = held.record.model if held and held.record.source.team == team else None
            uris[value] = model.uri if model and model.deleted_at is None else None
            problem = "there is no run with this id that has left a model"
            repair = "name a run that `trainmaster ls` shows as succeeded, or write --start_from=champion"
            fault, problems = Fault(path=at, problem=problem, value=value, repair=repair), faults
        if uris[value] is None:
            problems.append(fault)
    if faults:
        return Refused(faults=tuple(faults))
    document = with_models(request.document, uris)
    return replace(request, document=document, warnings=(*request.warnings, *warnings))


def launch(services: Services, incoming: IncomingDocument, request: Request, read: Document) -> FlowResult:
    """The run of a request without a record: submitted, waiting, or rejected by a cap; or all runs of its matrix.

    Safe to repeat and to run concurrently.

    Raises:
        LeaseHeld, LeaseTooShort, RecordMoved, SubmissionUnknown: a later delivery must try again.
    """
    runs = _runs_of(incoming, request)
    # A run of an incomplete group is there: a cap that was reached since must not refuse the others.
    is_begun = len(runs) > 1 and services.ledger.find(runs[-1][0].run_id) is not None
    if not is_begun and (over := _over_caps(services, incoming.run_id, request)):
        return reject(services, incoming, Refused(faults=(over.fault,)), over)
    results = [_launch_run(services, *run, read) for run in reversed(runs)]
    if len(runs) == 1:
        return results[0]
    message = f"{len(runs)} runs of one matrix: {'; '.join(dict.fromkeys(each.message for each in results))}"
    is_due = any(result.is_due for result in results)
    return replace(results[-1], message=message, run_id=incoming.run_id, is_due=is_due)


def _runs_of(incoming: IncomingDocument, request: Request) -> list[tuple[IncomingDocument, Request]]:
    """What came in and the request, for each combination of its matrix; without a matrix, once as they are."""
    if MATRIX not in request.document:
        return [(incoming, request)]
    documents = run_documents(request.document)
    return [
        (own, replace(request, document=document, spec=spec_from(document)))
        for own, document in zip(_group_of(incoming, len(documents)), documents, strict=True)
    ]


def _group_of(incoming: IncomingDocument, runs: int) -> Iterator[IncomingDocument]:
    """What came in, as each of that many runs of one group."""
    for number in range(1, runs + 1):
        group = RunGroup(id=incoming.run_id, number=number, runs=runs)
        source = replace(incoming.source, group=group)
        yield replace(incoming, run_id=group.run_ids[number - 1], source=source)


def _launch_run(
    services: Services, incoming: IncomingDocument, request: Request, read: Document
) -> FlowResult:
    run_id = incoming.run_id
    services.ledger.mark_active(run_id)
    uri, sha256 = services.ledger.keep_submitted(run_id, submitted_document(run_id, request.dialect, read))
    original = Original(uri=uri, sha256=sha256, dialect=request.dialect)
    try:
        held = services.ledger.create(_reserved_record(services, incoming, request, original))
    except RecordExists:
        return resume_recorded(services, incoming, services.ledger.present(run_id))
    with suppress(TrainmasterError):  # the submission must not wait for a status, and writes the next one
        write_status(services, held)
    return with_warnings(submit(services, held), held.record.problems)


def _over_caps(services: Services, run_id: str, request: Request) -> CapReached | None:
    """The cap that refuses the run, or group. None: it may start, and is counted. Without caps it costs nothing."""
    caps = services.policy().admission.caps
    if not caps.counted:
        return None
    now, cost = services.clock.now(), request.estimate.at_most if request.estimate else None
    cost = None if cost is None else cost * request.runs
    marks = services.starts.of_day(now.date())
    own = _mark_of(marks, run_id)
    if own is None:
        # The marks have the store's clock: the existing ones are earlier.
        latest = max((now, *((mark.end or mark).created_at for mark in marks)))
        last = CountedStart(run_id=run_id, created_at=latest, cost=cost, hour=now, version=sys.maxsize)
        last = replace(last, runs=request.runs)
        if reached := over_cap(caps, marks, last):
            return reached
        services.starts.mark(run_id, now, cost, request.runs)
        marks = services.starts.of_day(now.date())
        own = _mark_of(marks, run_id) or last
    return over_cap(caps, marks, own)


def _mark_of(marks: Sequence[CountedStart], run_id: str) -> CountedStart | None:
    return next((mark for mark in marks if mark.run_id == run_id), None)


def _reserved_record(
    services: Services, incoming: IncomingDocument, request: Request, original: Original
) -> RunRecord:
    first = _first_record(services, incoming, RunState.RESERVED)
    lease = Lease(attempt=services.attempt, expires_at=first.updated_at + services.lease)
    return replace(
        first,
        request=AcceptedRequest(
            document=request.document,
            original=original,
            model_name=request.spec.model_name,
            output_uri=request.spec.output_uri(incoming.run_id, services.target.models_bucket),
            model_uri=request.spec.model_uri_of(incoming.run_id),
            estimate=request.estimate,
            pools=request.pools or None,
        ),
        submission=SubmissionState(lease=lease),
        problems=tuple(str(warning) for warning in request.warnings),
    )


def _first_record(services: Services, incoming: IncomingDocument, state: RunState) -> RunRecord:
    now = services.clock.now()
    return RunRecord(
        run_id=incoming.run_id,
        state=state,
        source=incoming.source,
        attempt=services.attempt,
        updated_at=now,
        history=(Step(state=state, at=now),),
    )


def reject(
    services: Services,
    incoming: IncomingDocument,
    refused: Refused,
    over: CapReached | None = None,
    *,
    of_order: bool = False,
) -> FlowResult:
    """Reject the run, or the order, for the faults. Safe to repeat and to run concurrently.

    The report, then the record, then the status.

    The reconciler publishes the notice: importing the Pub/Sub client takes longer than all of this.
    """
    services.ledger.mark_active(incoming.run_id)
    report_uri = report(services, incoming, refused)
    record = replace(
        _first_record(services, incoming, RunState.REJECTED),
        problems=tuple(str(fault) for fault in refused.faults),
        rejection=Rejection(
            report_uri=report_uri,
            cap=over.window if over is not None else None,
            faults=first_faults(refused.faults),
            of_order=of_order or None,
        ),
    )
    try:
        held = services.ledger.create(record)
    except RecordExists:
        there = services.ledger.present(incoming.run_id)
        if there.record.state is not RunState.REJECTED:
            # Another attempt accepted it, perhaps under another policy: a report next to that would mislead.
            services.ledger.unreport(incoming.run_id)
        return resume_recorded(services, incoming, there)
    show(services, held)
    number = len(refused.faults)
    faults = "1 fault" if number == 1 else f"{number} faults"
    why = f"for {faults}" if over is None else f"by a cap: {over.fault.problem}"
    message = f"the request was rejected {why}"
    return FlowResult(message=message, run_id=incoming.run_id, severity="WARNING")


def reject_rest(services: Services, incoming: IncomingDocument, refused: Refused) -> FlowResult:
    """Reject what may be a matrix of which a crash left some runs: then the others, and otherwise the run. See `reject`."""
    there = {record.run_id: record for record in services.ledger.runs_of_group(incoming.run_id)}
    group = next((record.source.group for record in there.values()), None)
    if group is None:
        return reject(services, incoming, refused)
    missing = [one for one in _group_of(incoming, group.runs) if one.run_id not in there]
    if not missing:
        return resume(services, services.ledger.present(group.run_ids[0]))
    accepted = [run_id for run_id, record in there.items() if record.state is not RunState.REJECTED]
    fault = Fault(
        path="$",
        problem=f"{len(accepted)} of the {group.runs} runs of this matrix were accepted before the others were refused",
        found=listed(accepted, ACCEPTED_SHOWN),
        repair=f"to end them too: trainmaster cancel {group.id}",
    )
    rest = Refused(faults=(fault, *refused.faults))
    return [reject(services, one, rest) for one in reversed(missing)][-1]


def resume_recorded(services: Services, incoming: IncomingDocument, held: Held) -> FlowResult:
    """The run that another attempt recorded first, moved forward; unless that was for another document of the key."""
    if is_key_reused(held.record.source.content_id, incoming.source):
        return refuse_key(services, incoming)
    return resume(services, held)


def refuse_key(services: Services, incoming: IncomingDocument) -> FlowResult:
    """Reject the message, whose key named another document before. Its report and status are under its own id."""
    own = incoming.without_key()
    if held := services.ledger.find(own.run_id):
        return resume(services, held)
    refused = refusal_of(
        problem=f"its idempotency_key named another document before: {incoming.run_id}",
        value=incoming.source.idempotency_key,
        repair="give each request or order its own key, for example with the date in it",
    )
    return reject(services, own, refused)


def report(services: Services, incoming: IncomingDocument, refused: Refused) -> str:
    """Store the rejection report of a request or rule, and return its URI. Safe to repeat."""
    document = {
        "schema": "rejection_report.v1",
        "run_id": incoming.run_id,
        "source": encoded(incoming.source),
        "faults": [fault.document for fault in refused.faults],
    }
    return services.ledger.report(incoming.run_id, document)
