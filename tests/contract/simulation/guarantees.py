"""Checks of every simulation once it is idle: the guarantees of docs/explanation/guarantees.md."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal
from itertools import pairwise

from tests.contract.index import index_violations
from tests.contract.simulation.checks import COST_PER_DAY, RUNS_PER_HOUR
from tests.contract.simulation.odds import Odds
from tests.contract.simulation.requests import CHAMPION, MODELS_WITH_CHAMPION, SampleRequest
from tests.contract.simulation.simulation import Simulation
from tests.contract.simulation.tally import Tally
from tests.contract.simulation.workload import SentRequest, TrainingJobs, Users
from tests.contract.world import LEDGER
from trainmaster.orchestrator.core.admission.actual_cost import final_cost
from trainmaster.orchestrator.core.admission.caps import CountedStart
from trainmaster.orchestrator.core.admission.retries import retries_of
from trainmaster.orchestrator.core.errors import ObjectGone
from trainmaster.orchestrator.core.job_names import same_job
from trainmaster.orchestrator.core.names import (
    held_slot,
    held_slot_parts,
    message_status_object,
    status_object,
)
from trainmaster.orchestrator.core.runs.job import Job, JobState
from trainmaster.orchestrator.core.runs.moves import gave_up
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.same_request import SAVED_AGAIN_WITHIN, document_id
from trainmaster.orchestrator.core.runs.states import END_OF, ENDS, RunState
from trainmaster.orchestrator.core.sizes import MIB

RUNS, SUFFIX = "runs/", ".json"


def simulate(*, seed: str, events: int, odds: Odds | None = None) -> Tally:
    return run_and_check(Simulation(seed=seed, odds=odds), events)


def run_and_check(simulation: Simulation, events: int) -> Tally:
    """Send requests until `events` deliveries were made, run until idle, then check every guarantee."""
    users, training_jobs = Users(simulation, events), TrainingJobs(simulation)
    simulation.run()
    return check_guarantees(simulation, users, training_jobs)


def check_guarantees(simulation: Simulation, users: Users, training_jobs: TrainingJobs) -> Tally:
    """The simulation's tally, with every broken guarantee.

    If processes continue after their leases, a run may get a second job, which must then be found.
    """
    tally, world = simulation.tally, simulation.world
    records = {run_id: world.record(run_id) for run_id in _run_ids(simulation)}
    refused = dict(_refused_by_key(users, records))
    repeated = [
        run_id
        for run_id, sent in users.requests.items()
        if run_id not in records and _is_repetition(users, sent, records)
    ]
    tally.requests, tally.runs = len(users.requests) - len(repeated) + len(refused), len(records)
    tally.jobs = simulation.jobs.submitted.total()
    surplus = {
        run_id: count - _jobs_of(records.get(run_id)) for run_id, count in simulation.jobs.submitted.items()
    }
    tally.duplicate_jobs = sum(count for count in surplus.values() if count > 0)
    tally.submissions.update(simulation.jobs.answers)
    tally.ends.update(record.state.value for record in records.values())
    lost = [run_id for run_id in {**users.requests, **refused} if run_id not in records]
    lost = sorted(set(lost) - set(repeated))
    unfinished = [run_id for run_id, record in records.items() if not record.ended]
    tally.lost, tally.unfinished = len(lost), len(unfinished)
    tally.violations += [f"{run_id} was requested and has no record" for run_id in lost]
    tally.violations += [f"{run_id} never ended: {records[run_id].state}" for run_id in unfinished]
    if not simulation.odds.beyond_lease:
        tally.violations += [
            f"{run_id} got {count} jobs too many" for run_id, count in surplus.items() if count > 0
        ]
    tally.violations += [
        f"{run_id} has {-count} jobs on record that were never submitted"
        for run_id, count in surplus.items()
        if count < 0
    ]
    for record in records.values():
        tally.violations += [
            f"{record.run_id}: {violation}"
            for violation in _run_violations(simulation, users, training_jobs, record, refused)
        ]
    tally.violations += [f"{run_id} still has a marker" for run_id in world.active()]
    _count_waits(tally, records)
    tally.violations += _admission_violations(simulation, records)
    tally.violations += _status_violations(simulation, users, records)
    tally.violations += index_violations(world, list(records.values()))
    tally.violations += _champion_violations(simulation, records)
    tally.violations += [f"a bug: {bug}" for bug in tally.bugs]
    return tally


def notice_ids(record: RunRecord) -> Iterator[str]:
    """The ids of the notices about the record's history; a state that recurs has a number at its end, a retry its round."""
    times = Counter[RunState]()
    for step in record.history:
        times[step.state] += 1
        yield step.state.value if times[step.state] == 1 else f"{step.state}/{times[step.state]}"
    jobs = enumerate(record.submission.abandoned_jobs, start=1)
    yield from (f"retried/{number}" for number, job in jobs if job.was_lost)


def _jobs_of(record: RunRecord | None) -> int:
    """The number of jobs the run may have: one, and one more for each stockout and retry."""
    return 1 if record is None else record.round + (record.job is not None)


def _count_waits(tally: Tally, records: dict[str, RunRecord]) -> None:
    for record in records.values():
        moments = [(step.state, step.at) for step in record.history]
        for (state, began), (_, ended) in pairwise(moments):
            if state is RunState.WAITING:
                tally.waits[_length((ended - began).total_seconds())] += 1
        tally.retries += (retries := retries_of(record))
        tally.stockouts += record.round - retries
        tally.given_up += sum(job.why == "start_deadline" for job in record.submission.abandoned_jobs)
        tally.kept += record.submission.giving_up is not None
        tally.refused_by_caps += record.rejection is not None and record.rejection.cap is not None
        tally.candidates[f"candidate {record.submission.candidate}"] += record.job is not None


def _length(seconds: float) -> str:
    return next((f"up to {most} s" for most in (60, 600, 3600) if seconds <= most), "more than an hour")


def _admission_violations(simulation: Simulation, records: dict[str, RunRecord]) -> Iterator[str]:
    """No run waits, no ended run holds a slot, and no cap was exceeded."""
    simulation.world.reconcile()
    for place in simulation.world.services().queue.places()[0]:
        yield f"{place.run_id} still has a place in the queue"
    yield from _held_slots(simulation, records)
    admitted = _admitted(simulation, records)
    hours = Counter(f"{mark.counts_at:%dT%H}" for mark in admitted)
    yield from (
        f"{count} runs started in hour {hour}" for hour, count in hours.items() if count > RUNS_PER_HOUR
    )
    yield from _cost_violations(simulation, records, admitted)
    for record in records.values():
        if (
            record.rejection is not None
            and record.rejection.cap is not None
            and not simulation.notices.ids[f"caps/{record.rejection.cap}"]
        ):
            yield f"{record.rejection.cap} was reached without a notice"


def _admitted(simulation: Simulation, records: dict[str, RunRecord]) -> list[CountedStart]:
    """The marks of the runs that were not rejected, in their order."""
    starts = simulation.world.services().starts
    days = {record.history[0].at.date() for record in records.values()}
    marks = sorted((mark for day in days for mark in starts.of_day(day)), key=lambda mark: mark.order)
    known = (mark for mark in marks if mark.run_id in records)
    return [mark for mark in known if records[mark.run_id].state is not RunState.REJECTED]


def _cost_violations(
    simulation: Simulation, records: dict[str, RunRecord], admitted: Sequence[CountedStart]
) -> Iterator[str]:
    """A start that exceeds the cap of its day, and an ended run that does not count with what it cost.

    By the records alone: at each start, the runs of the day that have ended count with their cost, the others with
    their maximum.
    """
    for number, mark in enumerate(admitted):
        before = [
            other for other in admitted[: number + 1] if other.counts_at.date() == mark.counts_at.date()
        ]
        cost = sum(_cost_at(records[other.run_id], other, mark.created_at) for other in before)
        simulation.tally.freed_by_ends += sum(other.cost or 0 for other in before) > COST_PER_DAY
        if cost > COST_PER_DAY:
            yield f"{mark.run_id} started when the runs of its day might cost {cost}"
        record = records[mark.run_id]
        is_of_its_day = record.history[0].at.date() == record.updated_at.date() == mark.counts_at.date()
        spent = final_cost(record)
        if is_of_its_day and spent is not None and (mark.end is None or mark.end.cost != spent):
            yield f"{mark.run_id} cost {spent}, and counts with {mark.end or mark.cost}"


def _cost_at(record: RunRecord, mark: CountedStart, moment: datetime) -> Decimal:
    spent = final_cost(record) if record.history[-1].at <= moment else None
    return (mark.cost or Decimal(0)) if spent is None else spent


def _held_slots(simulation: Simulation, records: dict[str, RunRecord]) -> Iterator[str]:
    """Slots that were never released.

    A process that continues after its lease may take its run's slot again, with another generation than the
    record's. No run owns that slot, and the next run that finds no free one takes it over.
    """
    for listed in simulation.world.objects.listing(LEDGER, "slots/"):
        holder = listed.metadata["run_id"]
        name = listed.name.removeprefix("slots/")
        on_record = records[holder].admission.slots if holder in records else ()
        if simulation.odds.beyond_lease and holder in records:
            kept = held_slot(name, listed.generation) in on_record
        else:
            kept = holder not in records or name in {held_slot_parts(each)[0] for each in on_record}
        if kept:
            yield f"{holder} still holds {listed.name}"


def _run_ids(simulation: Simulation) -> list[str]:
    listed = simulation.world.objects.listing(LEDGER, RUNS)
    return [each.name.removeprefix(RUNS).removesuffix(SUFFIX) for each in listed]


def _refused_by_key(users: Users, records: dict[str, RunRecord]) -> Iterator[tuple[str, SentRequest]]:
    """The messages whose key names another document on record, each by the id of its rejection."""
    for run_id, messages in users.keyed.items():
        first = records[run_id].source.content_id if run_id in records else None
        for message in messages:
            assert isinstance(message.content, bytes)
            if document_id(message.content) != first:
                sample = SampleRequest(content=message.content, valid=False)
                yield message.without_key().run_id, SentRequest(incoming=message, sample=sample)


def _is_repetition(users: Users, sent: SentRequest, records: dict[str, RunRecord]) -> bool:
    """Whether the same bytes, saved a moment before or later under the same name, have a run instead."""
    source = sent.incoming.source
    return source.object_name is not None and any(
        other.incoming.source.object_name == source.object_name
        and other.sample.content == sent.sample.content
        and source.event_time - other.incoming.source.event_time <= SAVED_AGAIN_WITHIN
        and other.incoming.run_id in records
        for other in users.requests.values()
    )


def _run_violations(
    simulation: Simulation,
    users: Users,
    training_jobs: TrainingJobs,
    record: RunRecord,
    refused: dict[str, SentRequest],
) -> Iterator[str]:
    request = users.requests.get(record.run_id) or refused.get(record.run_id)
    if request is None:
        yield "it was never requested"
        return
    if not request.sample.valid and record.state is not RunState.REJECTED:
        yield f"the request was invalid, and the run is {record.state}"
    if (
        request.sample.valid
        and record.state is RunState.REJECTED
        and not _may_be_rejected(simulation, record)
    ):
        yield f"the request was valid, and was rejected: {record.problems}"
    if record.ended and record.state is not RunState.REJECTED:
        yield from _job_violations(simulation, users, training_jobs, record)
    if record.state is RunState.SUCCEEDED and record.model is None:
        yield "it succeeded without a model on record"
    announced = {state for state in RunState if simulation.notices.ids[f"{record.run_id}/{state}"]}
    missing = [each for each in notice_ids(record) if not simulation.notices.ids[f"{record.run_id}/{each}"]]
    if missing:
        yield f"no notice of {missing}"
    if announced & ENDS != {record.state} & ENDS:
        yield f"its notices say it ended as {sorted(announced & ENDS)}, its record says {record.state}"


def _may_be_rejected(simulation: Simulation, record: RunRecord) -> bool:
    return (record.rejection is not None and record.rejection.cap is not None) or _was_overwritten(
        simulation, record
    )


def _was_overwritten(simulation: Simulation, record: RunRecord) -> bool:
    source = record.source
    if source.object_name is None:
        return False
    try:
        simulation.world.objects.read("inbox", source.object_name, source.generation, max_bytes=MIB)
    except ObjectGone:
        return True
    return False


def _job_violations(
    simulation: Simulation, users: Users, training_jobs: TrainingJobs, record: RunRecord
) -> Iterator[str]:
    """A run ends as its job does.

    A run without a job fails only if the service refused it, and is cancelled only by an order.
    """
    if record.job is None:
        by_order = record.state is RunState.CANCELLED and record.run_id in users.cancelled
        if not by_order and record.run_id not in simulation.jobs.refused:
            yield f"it is {record.state} without a job"
        yield from (
            f"it has no job, and {other.name}, {other.state}, was not found"
            for other in simulation.jobs.all_of_run(record.run_id)
            if other.output_uri == record.output_uri and not _found(record, other)
        )
        return
    name = record.job.name
    if name in training_jobs.deleted:
        if record.state is not RunState.FAILED and record.job.state not in END_OF:
            yield f"its job was deleted, and the run is {record.state}"
        return
    job = simulation.jobs.read(name)
    if END_OF.get(job.state) is not record.state:
        yield f"its job is {job.state}, and the run is {record.state}"
    for other in simulation.jobs.all_of_run(record.run_id):
        ours = other.output_uri == job.output_uri and not same_job(other.name, name)
        if ours and not _found(record, other):
            yield f"{other.name}, {other.state}, a second job beside {name}, was not found"


def _found(record: RunRecord, other: Job) -> bool:
    """Whether another job of the run was cancelled or is reported in the record."""
    return (
        other.state is JobState.CANCELLED
        or gave_up(record, other.name)
        or any(other.name in problem for problem in record.problems)
    )


def _status_violations(simulation: Simulation, users: Users, records: dict[str, RunRecord]) -> Iterator[str]:
    """The status of a dropped name describes its newest drop; that of a message, its run."""
    newest: dict[str, RunRecord] = {}
    for record in records.values():
        source = record.source
        if source.message_id is not None:
            newest[message_status_object(source.message_id, source.idempotency_key)] = record
        name = status_object(source.object_name) if source.object_name is not None else None
        if name is not None and (record.source.generation or 0) > (
            newest[name].source.generation or 0 if name in newest else -1
        ):
            newest[name] = record
    for name, record in newest.items():
        try:
            status = simulation.world.document(name)
        except ObjectGone:
            yield f"{record.run_id}: {name} has no status"
            continue
        if (status["run_id"], status["state"]) != (record.run_id, record.state):
            yield f"{record.run_id}: it is {record.state}, the status of {name} says {status['state']}"


def _champion_violations(simulation: Simulation, records: dict[str, RunRecord]) -> Iterator[str]:
    """The champion of a model is the best of its runs and has the alias, and every reign has a notice."""
    for number in range(MODELS_WITH_CHAMPION):
        model_name = f"model-{number}"
        best = max(
            (
                record.model.metrics[str(CHAMPION["metric"])]
                for record in records.values()
                if record.model_name == model_name and record.model is not None and record.model.metrics
            ),
            default=None,
        )
        held = simulation.world.services().champions.find(model_name)
        reigns = held.history if held is not None else ()
        value = held.current.value if held is not None and held.current is not None else None
        if value != best:
            yield f"the champion of {model_name} has {value}, its best run {best}"
        aliased = simulation.world.models.aliased_run(model_name)
        if aliased != (held.current.run_id if held is not None and held.current is not None else None):
            yield f"the alias of {model_name} is on {aliased}, not on its champion"
        for reign in reigns:
            if not simulation.notices.ids[f"champions/{model_name}/{reign.number}"]:
                yield f"reign {reign.number} of {model_name} has no notice"
