"""What must be true of every life once it is at rest. docs/explanation/guarantees.md says the same to users."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

from tests.contract.life.asking import CHAMPION, CONTESTED
from tests.contract.life.life import Life
from tests.contract.life.people import Trainers, Users
from tests.contract.life.tally import Tally
from tests.contract.life.watch import RUNS_PER_HOUR
from tests.contract.world import LEDGER
from trainmaster.orchestrator.core.errors import ObjectGone
from trainmaster.orchestrator.core.names import (
    held_slot,
    held_slot_parts,
    message_status_object,
    same_job,
    started_hour,
    status_object,
)
from trainmaster.orchestrator.core.runs.job import Job, JobState
from trainmaster.orchestrator.core.runs.moves import gave_up
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.states import END_OF, ENDS, RunState

RUNS, SUFFIX = "runs/", ".json"


def account_of(life: Life, users: Users, trainers: Trainers) -> Tally:
    """The life's tally, with every promise that was broken.

    Where processes go on after their leases, a run may be given a second job: then it must be found.
    """
    tally, world = life.tally, life.world
    records = {run_id: world.record(run_id) for run_id in _run_ids(life)}
    tally.asked, tally.runs = len(users.requests), len(records)
    tally.jobs = life.jobs.submitted.total()
    extra = {run_id: count - _jobs_of(records.get(run_id)) for run_id, count in life.jobs.submitted.items()}
    tally.duplicate_jobs = sum(count for count in extra.values() if count > 0)
    tally.service.update(life.jobs.answers)
    tally.ends.update(record.state.value for record in records.values())
    lost = [run_id for run_id in users.requests if run_id not in records]
    unfinished = [run_id for run_id, record in records.items() if not record.ended]
    tally.lost, tally.unfinished = len(lost), len(unfinished)
    tally.violations += [f"{run_id} was asked for and is on no record" for run_id in lost]
    tally.violations += [f"{run_id} never ended: {records[run_id].state}" for run_id in unfinished]
    if not life.odds.beyond_lease:
        tally.violations += [
            f"{run_id} was given {count} jobs too many" for run_id, count in extra.items() if count > 0
        ]
    tally.violations += [
        f"{run_id} has {-count} jobs on record that it was never given"
        for run_id, count in extra.items()
        if count < 0
    ]
    for record in records.values():
        tally.violations += [
            f"{record.run_id}: {broken}" for broken in _broken(life, users, trainers, record)
        ]
    tally.violations += [f"{run_id} has a marker still" for run_id in world.active()]
    _count_waits(tally, records)
    tally.violations += _admission(life, records)
    tally.violations += _statuses(life, users, records)
    tally.violations += _champions(life, records)
    tally.violations += [f"a mistake of the program: {mistake}" for mistake in tally.mistakes]
    return tally


def entered_ids(record: RunRecord) -> Iterator[str]:
    """What the notices of the record's history are called: the second time of a state is told as another fact."""
    times = Counter[RunState]()
    for step in record.history:
        times[step.state] += 1
        yield step.state.value if times[step.state] == 1 else f"{step.state}/{times[step.state]}"


def _jobs_of(record: RunRecord | None) -> int:
    """How many jobs the run may have been given: one, and one for each that found no capacity."""
    return 1 if record is None else record.round + (record.job is not None)


def _count_waits(tally: Tally, records: dict[str, RunRecord]) -> None:
    for record in records.values():
        moments = [(step.state, step.at) for step in record.history]
        for (state, began), (_, ended) in pairwise(moments):
            if state is RunState.WAITING:
                tally.waits[_length((ended - began).total_seconds())] += 1
        tally.stockouts += record.round
        tally.refused_by_caps += record.rejection is not None and record.rejection.cap is not None
        tally.candidates[f"candidate {record.submission.candidate}"] += record.job is not None


def _length(seconds: float) -> str:
    return next((f"up to {most} s" for most in (60, 600, 3600) if seconds <= most), "more than an hour")


def _admission(life: Life, records: dict[str, RunRecord]) -> Iterator[str]:
    """Nobody waits, nobody who goes on holds anything, and no cap was passed."""
    life.world.reconcile()
    for place in life.world.services().queue.places():
        yield f"{place.run_id} has a place in the queue still"
    yield from _held_slots(life, records)
    hours = Counter[str]()
    for listed in life.world.objects.listing(LEDGER, "started/"):
        run_id = listed.name.rpartition("/")[2]
        if run_id in records and records[run_id].state is not RunState.REJECTED:
            hours[f"{started_hour(listed.name):%dT%H}"] += 1
    yield from (
        f"{count} runs started in hour {hour}" for hour, count in hours.items() if count > RUNS_PER_HOUR
    )
    for record in records.values():
        if (
            record.rejection is not None
            and record.rejection.cap is not None
            and not life.notices.ids[f"caps/{record.rejection.cap}"]
        ):
            yield f"{record.rejection.cap} was reached and not told"


def _held_slots(life: Life, records: dict[str, RunRecord]) -> Iterator[str]:
    """Slots that nobody gave back.

    A process that goes on after its lease may take its run's slot again, as another than the record's: then it is
    nobody's, and whoever finds no other takes it over.
    """
    for listed in life.world.objects.listing(LEDGER, "slots/"):
        holder = listed.metadata["run_id"]
        name = listed.name.removeprefix("slots/")
        on_record = records[holder].admission.slots if holder in records else ()
        if life.odds.beyond_lease and holder in records:
            kept = held_slot(name, listed.generation) in on_record
        else:
            kept = holder not in records or name in {held_slot_parts(each)[0] for each in on_record}
        if kept:
            yield f"{holder} holds {listed.name} still"


def _run_ids(life: Life) -> list[str]:
    listed = life.world.objects.listing(LEDGER, RUNS)
    return [each.name.removeprefix(RUNS).removesuffix(SUFFIX) for each in listed]


def _broken(life: Life, users: Users, trainers: Trainers, record: RunRecord) -> Iterator[str]:
    request = users.requests.get(record.run_id)
    if request is None:
        yield "nobody asked for it"
        return
    if not request.asked.sound and record.state is not RunState.REJECTED:
        yield f"the request was faulty, and the run is {record.state}"
    if request.asked.sound and record.state is RunState.REJECTED and not _excused(life, record):
        yield f"the request was sound, and was rejected: {record.problems}"
    if record.ended and record.state is not RunState.REJECTED:
        yield from _job_disagrees(life, users, trainers, record)
    if record.state is RunState.SUCCEEDED and record.model is None:
        yield "it succeeded and its model is not on record"
    told = {state for state in RunState if life.notices.ids[f"{record.run_id}/{state}"]}
    untold = [each for each in entered_ids(record) if not life.notices.ids[f"{record.run_id}/{each}"]]
    if untold:
        yield f"not told: {untold}"
    if told & ENDS != {record.state} & ENDS:
        yield f"told of the ends {sorted(told & ENDS)}, the record says {record.state}"


def _excused(life: Life, record: RunRecord) -> bool:
    return (record.rejection is not None and record.rejection.cap is not None) or _written_over(life, record)


def _written_over(life: Life, record: RunRecord) -> bool:
    source = record.source
    if source.object_name is None:
        return False
    try:
        life.world.objects.read("inbox", source.object_name, source.generation)
    except ObjectGone:
        return True
    return False


def _job_disagrees(life: Life, users: Users, trainers: Trainers, record: RunRecord) -> Iterator[str]:
    """No end without the job's own.

    A run without a job fails only where the service refused it, and is cancelled only by order.
    """
    if record.job is None:
        by_order = record.state is RunState.CANCELLED and record.run_id in users.ended
        if not by_order and record.run_id not in life.jobs.refused:
            yield f"it is {record.state} and has no job"
        yield from (
            f"it has no job, and there was {other.name}, {other.state}, which nobody found"
            for other in life.jobs.given_to(record.run_id)
            if other.output_uri == record.output_uri and not _found(record, other)
        )
        return
    name = record.job.name
    if name in trainers.deleted:
        if record.state is not RunState.FAILED and record.job.state not in END_OF:
            yield f"its job was deleted, and the run is {record.state}"
        return
    job = life.jobs.read(name)
    if END_OF.get(job.state) is not record.state:
        yield f"its job is {job.state}, and the run is {record.state}"
    for other in life.jobs.given_to(record.run_id):
        ours = other.output_uri == job.output_uri and not same_job(other.name, name)
        if ours and not _found(record, other):
            yield f"beside {name} there was {other.name}, {other.state}, which nobody found"


def _found(record: RunRecord, other: Job) -> bool:
    """Whether a job that is not the run's goes on no more, or the record tells of it."""
    return (
        other.state is JobState.CANCELLED
        or gave_up(record, other.name)
        or any(other.name in problem for problem in record.problems)
    )


def _statuses(life: Life, users: Users, records: dict[str, RunRecord]) -> Iterator[str]:
    """The status of a dropped name is its newest drop's, and each message has its run's."""
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
            status = life.world.document(name)
        except ObjectGone:
            yield f"{record.run_id}: {name} has no status"
            continue
        if (status["run_id"], status["state"]) != (record.run_id, record.state):
            yield f"{record.run_id}: it is {record.state}, the status of {name} says {status['state']}"


def _champions(life: Life, records: dict[str, RunRecord]) -> Iterator[str]:
    """A contested model's champion is the best of its runs, and every reign was told."""
    for number in range(CONTESTED):
        model_name = f"model-{number}"
        best = max(
            (
                record.model.metrics[str(CHAMPION["metric"])]
                for record in records.values()
                if record.model_name == model_name and record.model is not None and record.model.metrics
            ),
            default=None,
        )
        held = life.world.services().champions.find(model_name)
        reigns = held.history if held is not None else ()
        value = held.current.value if held is not None and held.current is not None else None
        if value != best:
            yield f"the champion of {model_name} has {value}, the best run {best}"
        for reign in reigns:
            if not life.notices.ids[f"champions/{model_name}/{reign.number}"]:
                yield f"reign {reign.number} of {model_name} was not told"
