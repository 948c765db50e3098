"""A request becomes a job, effectively once.

The order of writes, and what a crash between two of them leaves:

    marker    the sweep will look; without a record it finds nothing and the event comes again
    record    reserved, with a lease: until it expires nobody else submits
    job       there is one, unrecorded: whoever takes the lease over finds it by its label
    notices   of the states entered; told again by whoever finds the job
    record    submitted: whoever comes now finds the job's name
    status    the user can see it; the event is acknowledged after this
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from orchestrator.core.codec import encoded
from orchestrator.core.documents import is_json
from orchestrator.core.errors import (
    LeaseHeld,
    LeaseTooShort,
    ObjectGone,
    RecordExists,
    RecordMoved,
    SubmissionDeferred,
    SubmissionRefused,
    SubmissionUnknown,
)
from orchestrator.core.faults import Fault
from orchestrator.core.launch.event import Arrival
from orchestrator.core.launch.request import Refused, Request, dialect_of, request_in, too_large
from orchestrator.core.launch.spec import JobSpec
from orchestrator.core.launch.submission import output_uri_of, submission_of
from orchestrator.core.names import RUN_LABEL, model_name_from, output_prefix_uri, same_job, stem
from orchestrator.core.orders import ORDER_SCHEMA, FireOrder, Order, RollbackOrder, order_in
from orchestrator.core.run import (
    Job,
    Lease,
    Problem,
    RunRecord,
    RunState,
    Step,
    Waiting,
    job_of_run,
    may_submit,
    moved,
    taken_over,
    with_job,
)
from orchestrator.flow.second_job import cancel_second_jobs, look_for_second_job
from orchestrator.flow.services import Happened, Services
from orchestrator.flow.telling import tell_status, tell_steps, warned
from orchestrator.ports import Held

SUBMIT_NEEDS = timedelta(seconds=45)
"""What must be left of the lease before a submission starts; longer than the adapter's limit for all of it."""
WAIT_FIRST = timedelta(seconds=30)
WAIT_MOST = timedelta(minutes=10)
WAIT_IN_ALL = timedelta(days=7)
"""A run that finds no room for so long fails: whoever asked for it has long stopped waiting."""


TakeOrder = Callable[[Services, Arrival, Order], Happened | Refused]


def launch(services: Services, arrival: Arrival, take_order: TakeOrder | None = None) -> Happened:
    """The run that the arrival asks for, submitted, waiting, or rejected. Safe to repeat and to run at once.

    With `take_order`, what arrived may be an order instead; one that is refused is rejected like a request.

    Raises:
        LeaseHeld, LeaseTooShort, RecordMoved, SubmissionUnknown: a later delivery must look again.
    """
    # Looking first costs a new event one read, and lets a duplicate go after two, without its request.
    held = services.ledger.find(arrival.run_id)
    if held is not None:
        return resume(services, held)
    content = _content(services, arrival)
    order = _order_in(services, arrival, content) if take_order is not None else None
    if take_order is not None and isinstance(order, FireOrder | RollbackOrder):
        done = take_order(services, arrival, order)
        if isinstance(done, Happened):
            return done
        order = done
    request = order if isinstance(order, Refused) else _request(services, arrival, content)
    services.ledger.mark_active(arrival.run_id)
    if isinstance(request, Refused):
        return _reject(services, arrival, request)
    now = services.clock.now()
    try:
        held = services.ledger.create(_reserved(services, arrival, request, now))
    except RecordExists:
        return resume(services, _present(services, arrival.run_id))
    return warned(_submit(services, held, request.spec), held.record)


def resume(services: Services, held: Held) -> Happened:
    """Bring a run on record as far as it can go now.

    Raises:
        LeaseHeld: somebody else is at it.
    """
    record = held.record
    if record.state not in (RunState.RESERVED, RunState.WAITING):
        tell_status(services, record)
        return Happened(message=f"the run is on record already, {record.state}", run_id=record.run_id)
    now = services.clock.now()
    if not may_submit(record, now):
        if record.lease is not None and record.lease.expires_at > now:
            raise LeaseHeld(record.run_id, record.lease.expires_at)
        tell_status(services, record)
        return Happened(message="the run waits for room", run_id=record.run_id)
    held = services.ledger.replace(
        held, taken_over(record, attempt=services.attempt, now=now, lease=services.lease)
    )
    spec = _spec_of(record)
    job = _job_of(services, held.record, spec)
    if job is None:
        return warned(_submit(services, held, spec), record)
    return warned(_submitted(services, held, job, "a job of this run was found and adopted"), record)


def _spec_of(record: RunRecord) -> JobSpec:
    """The job of a run on record, which writes where the record says: the policy may have changed since."""
    document = record.request or {}
    spec = dialect_of(document).spec_from(document, record.model_name)
    return (
        replace(spec, output_prefix_uri=output_prefix_uri(record.output_uri)) if record.output_uri else spec
    )


def _content(services: Services, arrival: Arrival) -> bytes | Refused:
    content = arrival.content
    if isinstance(content, bytes):
        return content
    refusal = too_large(content.size_bytes)
    if refusal is not None:
        return refusal
    try:
        return services.inbox.read(content.bucket, content.name, content.generation)
    except ObjectGone as gone:
        fault = Fault(
            path="$",
            problem=f"{gone}: it was deleted or written over before it was read",
            repair="a newer upload of the name is a request of its own; otherwise drop the file again",
        )
        return Refused(faults=(fault,))


def _as_json(arrival: Arrival, content: bytes) -> bool:
    if isinstance(arrival.content, bytes):
        return is_json(content)
    return arrival.content.name.lower().endswith(".json")


def _order_in(services: Services, arrival: Arrival, content: bytes | Refused) -> Order | Refused | None:
    if isinstance(content, Refused):
        return None
    schema = services.standards().schemas[ORDER_SCHEMA]
    return order_in(content, as_json=_as_json(arrival, content), schema=schema)


def _request(services: Services, arrival: Arrival, content: bytes | Refused) -> Request | Refused:
    if isinstance(content, Refused):
        return content
    dropped = arrival.source.object_name
    return request_in(
        content,
        as_json=_as_json(arrival, content),
        standards=services.standards(),
        name=None if dropped is None else model_name_from(stem(dropped)),
    )


def _reserved(services: Services, arrival: Arrival, request: Request, now: datetime) -> RunRecord:
    return RunRecord(
        run_id=arrival.run_id,
        state=RunState.RESERVED,
        source=arrival.source,
        attempt=services.attempt,
        updated_at=now,
        history=(Step(state=RunState.RESERVED, at=now),),
        model_name=request.spec.model_name,
        request=request.document,
        output_uri=output_uri_of(arrival.run_id, request.spec, services.target),
        lease=Lease(attempt=services.attempt, expires_at=now + services.lease),
        problems=tuple(str(warning) for warning in request.warnings),
    )


def _reject(services: Services, arrival: Arrival, refused: Refused) -> Happened:
    """The report, then the record, then the status.

    The sweep tells the notice: the Pub/Sub client takes longer to import than all of this takes to do.
    """
    now = services.clock.now()
    report_uri = services.ledger.report(
        arrival.run_id,
        {
            "schema": "rejection_report.v1",
            "run_id": arrival.run_id,
            "source": encoded(arrival.source),
            "faults": [fault.document for fault in refused.faults],
        },
    )
    record = RunRecord(
        run_id=arrival.run_id,
        state=RunState.REJECTED,
        source=arrival.source,
        attempt=services.attempt,
        updated_at=now,
        history=(Step(state=RunState.REJECTED, at=now),),
        problems=tuple(str(fault) for fault in refused.faults),
        report_uri=report_uri,
    )
    try:
        services.ledger.create(record)
    except RecordExists:
        present = _present(services, arrival.run_id)
        if present.record.state is not RunState.REJECTED:
            # Another attempt found it sound, under another policy perhaps: a report beside it would mislead.
            services.ledger.unreport(arrival.run_id)
        return resume(services, present)
    tell_status(services, record)
    return Happened(
        message=f"the request was rejected with {len(refused.faults)} faults",
        run_id=arrival.run_id,
        severity="WARNING",
    )


def _submit(services: Services, held: Held, spec: JobSpec) -> Happened:
    # Importing the client and getting credentials have no limit of their own: they come before the look.
    services.prepare_jobs()
    record = held.record
    left = (record.lease.expires_at if record.lease else services.clock.now()) - services.clock.now()
    if left < SUBMIT_NEEDS:
        raise LeaseTooShort(record.run_id, left.total_seconds())
    try:
        job = services.jobs.submit(submission_of(record.run_id, spec, services.target))
    except SubmissionRefused as refusal:
        return _failed(services, held, refusal)
    except SubmissionDeferred as deferral:
        return _wait(services, held, deferral)
    except SubmissionUnknown:
        found = _job_of(services, record, spec)
        if found is None:
            # The service may show it a moment later: the lease keeps everybody off until it has.
            raise
        return _submitted(services, held, found, "the job was created, though its answer was lost")
    return _submitted(services, held, job, "the job was submitted")


def _job_of(services: Services, record: RunRecord, spec: JobSpec) -> Job | None:
    jobs = services.jobs.of_run(record.run_id, spec.kind)
    return next((job for job in jobs if job_of_run(record, job, RUN_LABEL)), None)


def _submitted(services: Services, held: Held, job: Job, what: str) -> Happened:
    known = with_job(held.record, job, now=services.clock.now(), attempt=services.attempt)
    tell_steps(services, held.record, known)
    try:
        held = services.ledger.replace(held, known)
    except RecordMoved:
        # The job's end may be on record before its submission; then that record stands. Or we were stopped
        # and taken over, and this job is the second one.
        held = _present(services, held.record.run_id)
        if held.record.job is None and not held.record.ended:
            raise
        held = cancel_second_jobs(services, held, [job])
    else:
        if held.record.second_look_at is not None:
            held = look_for_second_job(services, held)
    tell_status(services, held.record)
    if held.record.job is None or not same_job(held.record.job.name, job.name):
        problem = held.record.problems[-1] if held.record.problems else f"{job.name} is not the run's"
        return Happened(message=problem, run_id=held.record.run_id, severity="WARNING")
    return Happened(message=f"{what}: {job.name}", run_id=held.record.run_id)


def _failed(services: Services, held: Held, refusal: SubmissionRefused) -> Happened:
    now = services.clock.now()
    failed = moved(held.record, RunState.FAILED, entered_at=now, now=now, attempt=services.attempt)
    problem = Problem(message=f"Vertex AI refused the job: {refusal.reason}", code=refusal.code)
    held = services.ledger.replace(held, replace(failed, error=problem))
    tell_status(services, held.record)
    return Happened(message=str(refusal), run_id=held.record.run_id, severity="ERROR")


def _wait(services: Services, held: Held, deferral: SubmissionDeferred) -> Happened:
    """The run waits on record; the sweep tries again when it is due."""
    now = services.clock.now()
    if now - held.record.history[0].at > WAIT_IN_ALL:
        return _failed(
            services,
            held,
            SubmissionRefused(deferral.code, f"no room for {WAIT_IN_ALL.days} days: {deferral.reason}"),
        )
    attempts = held.record.waiting.attempts + 1 if held.record.waiting else 1
    pause = min(WAIT_FIRST * 2 ** min(attempts - 1, 10), WAIT_MOST)
    waiting = Waiting(reason=deferral.reason, attempts=attempts, not_before=now + pause)
    record = held.record
    if record.state is RunState.RESERVED:
        record = moved(record, RunState.WAITING, entered_at=now, now=now, attempt=services.attempt)
    record = replace(record, lease=None, waiting=waiting, updated_at=now, attempt=services.attempt)
    tell_steps(services, held.record, record)
    held = services.ledger.replace(held, record)
    tell_status(services, held.record)
    return Happened(message=f"{deferral}; the run waits", run_id=record.run_id, severity="NOTICE")


def _present(services: Services, run_id: str) -> Held:
    held = services.ledger.find(run_id)
    if held is None:
        raise RecordMoved(run_id)
    return held
