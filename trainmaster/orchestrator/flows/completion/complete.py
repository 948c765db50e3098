"""The end of a job becomes the end of its run. Whatever reports it, only the job itself is trusted."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal

from trainmaster.orchestrator.core.admission.actual_cost import with_earlier_jobs
from trainmaster.orchestrator.core.admission.candidates import candidates_of, current_candidate
from trainmaster.orchestrator.core.admission.cost import estimate_of
from trainmaster.orchestrator.core.admission.retries import retry_machines, with_retry
from trainmaster.orchestrator.core.admission.start_deadline import (
    WHY,
    ended_given_up,
    is_being_given_up,
    is_log_due,
    with_start_overdue,
)
from trainmaster.orchestrator.core.admission.waiting import NO_CAPACITY, may_wait, stocked_out
from trainmaster.orchestrator.core.completion.entry import JobHint
from trainmaster.orchestrator.core.completion.experiment import experiment_run
from trainmaster.orchestrator.core.completion.locations import model_locations, shared_location
from trainmaster.orchestrator.core.completion.losses import loss_of
from trainmaster.orchestrator.core.completion.model import (
    FoundModel,
    ModelDirectory,
    RecordedFiles,
    overwriting_problem,
)
from trainmaster.orchestrator.core.completion.outcome import (
    error_still_due,
    metrics_uri,
    outcome_of,
    overrun_timeout_s,
    progress_of,
    record_of_end,
    stockout_of,
    with_progress,
)
from trainmaster.orchestrator.core.completion.steps import (
    CHAMPION,
    EXPERIMENT,
    REASON,
    REGISTRY,
    UTILIZATION,
)
from trainmaster.orchestrator.core.errors import JobNotFound, PolicyInvalid, ReasonPending, RecordMoved
from trainmaster.orchestrator.core.job_names import job_region
from trainmaster.orchestrator.core.names import RUN_LABEL, STEP_LABEL, is_run_id
from trainmaster.orchestrator.core.notices.notice import run_retried
from trainmaster.orchestrator.core.requests.spec import JobSpec, spec_of
from trainmaster.orchestrator.core.runs.end import EVALUATION, Completion, EndReport
from trainmaster.orchestrator.core.runs.job import Job, JobLoss, Progress, RecordedJob
from trainmaster.orchestrator.core.runs.moves import gave_up, job_of_run
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.states import END_OF, OVER, RunState
from trainmaster.orchestrator.flows.completion.champion import compare_with_champion
from trainmaster.orchestrator.flows.completion.evaluation import evaluate
from trainmaster.orchestrator.flows.completion.explain import explain_failure
from trainmaster.orchestrator.flows.completion.registry import register_model
from trainmaster.orchestrator.flows.completion.utilization import read_utilization
from trainmaster.orchestrator.flows.lifecycle import finish, transitions
from trainmaster.orchestrator.flows.lifecycle.slots import job_cost
from trainmaster.orchestrator.flows.lifecycle.status import publish_states, show, show_again, with_warnings
from trainmaster.orchestrator.flows.services import FlowResult, Services
from trainmaster.orchestrator.log_events import LogEvent
from trainmaster.orchestrator.stores.ledger import RACES_MAX, Held

PAUSES_S = (0.5, 1.5, 4.0)
"""An entry may report an end before the job's state does: how long to wait for it, and then read the job again."""


def complete_from_log(services: Services, hint: JobHint) -> FlowResult:
    """Act on a log entry after reading the job itself. Safe to repeat, and in any order with a launch.

    An entry proves nothing. One about a job of another deployment or program, or about a trial, costs a read of the ledger,
    which marks the deployment's own jobs. The next tick finds what is left if an entry reports an end that the job does not confirm
    within seconds, or exceeds the reads that entries about a job may cause: neither is retried.

    Raises:
        ReasonPending: the job failed so recently that its reason is not available yet.
        RecordMoved: the record kept changing.
    """
    if not services.hint_reads.spend(hint.job_id):
        message = f"too many entries about job {hint.job_id}: the next tick reads it"
        return FlowResult(message=message, severity="DEBUG")
    try:
        name = services.ledger.find_job(hint.job_id)
        if name is None:
            return FlowResult(message=f"job {hint.job_id} was not submitted here", severity="DEBUG")
        return _act_on(services, hint, services.jobs.read(name))
    except JobNotFound:
        return FlowResult(message=f"job {hint.job_id} no longer exists", severity="NOTICE")
    except ReasonPending:
        raise
    except Exception:
        services.hint_reads.give_back(hint.job_id)
        raise


def _act_on(services: Services, hint: JobHint, job: Job) -> FlowResult:
    run_id = job.labels.get(RUN_LABEL, "")
    held = services.ledger.find(run_id) if is_run_id(run_id) else None
    if held is None:
        return FlowResult(message=f"{job.name} does not belong to any recorded run", severity="NOTICE")
    if STEP_LABEL in job.labels:
        return _follow_up(services, held, hint, job)
    if hint.tells_end:
        job = _wait_for_end(services, hint, job)
    report = EndReport(by="log", insert_id=hint.insert_id, entry_time=hint.entry_time)
    result = complete_run(services, held, job, report)
    if hint.tells_end and job.state not in END_OF:
        message = f"the log reports the end of {job.name}, which is still {job.state}: the next tick reads it"
        return replace(result, message=message, severity="NOTICE")
    return result


def _follow_up(services: Services, held: Held, hint: JobHint, job: Job) -> FlowResult:
    """Take the steps that may have waited for the end of a follow-up job; which one is theirs, the record says."""
    message = f"{job.name} is a follow-up job of the run"
    if hint.tells_end and held.record.ended:
        _wait_for_end(services, hint, job)
        finished = finish.finish_run(services, held, STEPS)
        return with_warnings(FlowResult(message=message, run_id=held.record.run_id), finished.problems)
    return FlowResult(message=message, run_id=held.record.run_id, severity="DEBUG")


def _wait_for_end(services: Services, hint: JobHint, job: Job) -> Job:
    """The job once it has ended; if the entry is false, the job as it is after some seconds."""
    for pause_s in PAUSES_S:
        if job.state in END_OF or not services.hint_reads.spend(hint.job_id):
            break
        services.clock.wait(pause_s)
        job = services.jobs.read(job.name)
    return job


def complete_run(
    services: Services, held: Held, job: Job, report: EndReport, *, shows_progress: bool = False
) -> FlowResult:
    """Bring the record up to date with the job. `shows_progress`: also with its progress, which may cost one read.

    Raises:
        ReasonPending: the job failed so recently that its reason is not available yet.
        RecordMoved: the record kept changing.
    """
    run_id = held.record.run_id
    directories: tuple[ModelDirectory, ...] = ()
    for _ in range(RACES_MAX):
        check_at = held.record.submission.second_job_check_at
        if job.state in END_OF and check_at is not None and not held.record.ended:
            held = transitions.look_for_second_job(services, held)
        # On each attempt, after the record is read: a newer record may have abandoned this job, and have another.
        passed_over = _not_its_job(services, held, job)
        if passed_over is not None:
            return passed_over
        if held.record.ended:
            if held.record.job is None:
                # It never had one: this is a second job, from a function that was suspended.
                held = transitions.cancel_second_jobs(services, held, [job])
            return finish.refresh_status(services, held, "the run had already ended")
        if error_still_due(job, services.clock.now()):
            raise ReasonPending(job.name)
        request, spec = held.record.request, spec_of(held.record)
        if request is not None and spec is not None and not directories:
            directories = services.models.look(model_locations(job, request, spec))
        try:
            return _write(services, held, job, directories, report, shows_progress=shows_progress)
        except RecordMoved:
            held = services.ledger.find(run_id) or held
    raise RecordMoved(run_id)


def _not_its_job(services: Services, held: Held, job: Job) -> FlowResult | None:
    """What to do with a job that is not, or no longer, the run's. None: it is the run's."""
    run_id = held.record.run_id
    is_abandoned = gave_up(held.record, job.name)
    if is_abandoned and job.state not in OVER:
        job = services.jobs.read(job.name)  # it may have ended since, or had vanished and is there again
    if is_abandoned and job.state in OVER:
        return FlowResult(message=f"{job.name} was already abandoned", run_id=run_id, severity="DEBUG")
    if job_of_run(held.record, job):
        return None
    transitions.cancel_second_jobs(services, held, [job])
    message = f"{job.name} carries this run's label but is not its job"
    return FlowResult(message=message, run_id=run_id, severity="WARNING")


def _write(
    services: Services,
    held: Held,
    job: Job,
    directories: Sequence[ModelDirectory],
    report: EndReport,
    *,
    shows_progress: bool,
) -> FlowResult:
    record, now = held.record, services.clock.now()
    scheduling = current_candidate(record).spec.scheduling if record.request else None
    no_capacity = stockout_of(job, scheduling)
    if no_capacity is not None and record.state is not RunState.RUNNING and may_wait(record, now):
        return try_elsewhere(services, held, job, no_capacity)
    is_given_up = record.submission.giving_up is not None and ended_given_up(record, job)
    if is_given_up and overrun_timeout_s(record, job) is None:
        return try_elsewhere(
            services, held, job, cost=_known_cost(services, record, job) if job.has_started else None
        )
    loss = loss_of(job, scheduling) if scheduling is not None and scheduling.retries else None
    retried = _try_again(services, held, job, loss) if loss is not None else None
    if retried is not None:
        return retried
    has_manifest = any(directory.manifest is not None for directory in directories)
    schema = services.export_schema() if has_manifest else {}
    spec = spec_of(record)
    outcome = outcome_of(job, directories, schema, spec)
    if outcome is None:
        return _record_active(services, held, job, spec, shows_progress=shows_progress)
    outcome = replace(outcome, found=_keep_files(services, record.run_id, outcome.found))
    ended = record_of_end(record, job, outcome, report=report, now=now, attempt=services.attempt)
    ended = _with_cost(services, ended, job)
    finished = finish.finish_run(services, services.ledger.replace(held, ended), STEPS, record)
    where = f"; its model is {ended.model.uri}" if ended.model else ""
    message, event = f"the run {ended.state}{where}", LogEvent.JOB_ENDED
    result = FlowResult(message=message, run_id=record.run_id, made_room=True, event=event)
    return with_warnings(result, finished.problems)


def _record_active(
    services: Services, held: Held, job: Job, spec: JobSpec | None, *, shows_progress: bool
) -> FlowResult:
    """Record how far the active job is; one that has not started by its deadline is given up, and then cancelled."""
    record, now = held.record, services.clock.now()
    progress = _progress(services, record, job, spec) if shows_progress else None
    known = with_progress(record, job, now=now, attempt=services.attempt, progress=progress)
    if known is not None:
        known = _with_overwriting_noted(services, record, known, job)
    known = with_start_overdue(known or record, job, now)
    is_logged = shows_progress and is_log_due(known, job, now)
    if is_logged:
        known = replace(known, submission=replace(known.submission, not_started_logged_at=now))
    if known is not record:
        known = replace(known, updated_at=now, attempt=services.attempt)
        publish_states(services, record, known)
        held = services.ledger.replace(held, known)
    is_given_up = is_being_given_up(known, job)
    if is_given_up:  # in each pass: a request to cancel guarantees nothing, and may never have been sent
        services.jobs.cancel(job.name)
    if known is not record:
        show(services, held)
    elif not shows_progress:  # a redelivery: the last one may have crashed before it showed the record
        show_again(services, held)
    message = f"the job is still active: {job.state}"
    message = f"{job.name} is given up, and being cancelled" if is_given_up else message
    result = FlowResult(message=message, run_id=record.run_id, severity="DEBUG")
    if not is_logged:
        return result
    message = f"the job has not started since {job.create_time}; {message}"
    return replace(result, message=message, severity="WARNING", event=LogEvent.JOB_NOT_STARTED)


def _with_cost(services: Services, ended: RunRecord, job: Job) -> RunRecord:
    """The record with its cost. A price table that cannot be used must not keep a run from ending."""
    try:
        cost = job_cost(services, ended, job)
    except PolicyInvalid as invalid:
        return replace(ended, problems=(*ended.problems, f"the cost of the run is unknown: {invalid}"))
    if cost is None:
        return ended
    cost = with_earlier_jobs(cost, ended)
    return replace(ended, completion=replace(ended.completion or Completion(), cost=cost))


def _known_cost(services: Services, record: RunRecord, job: Job) -> Decimal | None:
    """The total of this job's cost; None where it is unknown, or the price table cannot be used."""
    with suppress(PolicyInvalid):
        found = job_cost(services, record, job)
        return found.total if found is not None else None
    return None


def _progress(services: Services, record: RunRecord, job: Job, spec: JobSpec | None) -> Progress | None:
    if record.request is None or spec is None:
        return None
    uri = metrics_uri(job, record.request, spec)
    return progress_of(job, spec, services.models.metrics(uri) if uri is not None else None)


def _with_overwriting_noted(services: Services, before: RunRecord, known: RunRecord, job: Job) -> RunRecord:
    """For a run that has just started: the record with the models that it may overwrite among its problems.

    Costs one listing per run, and only if the request names a directory without `${run_id}`.
    """
    begins = known.state is RunState.RUNNING and before.state is not RunState.RUNNING
    place = shared_location(job, known.request) if begins and known.request is not None else None
    if place is None:
        return known
    (directory,) = services.models.look([place])
    problem = overwriting_problem(directory)
    return known if problem is None else replace(known, problems=(*known.problems, problem))


def _keep_files(services: Services, run_id: str, found: FoundModel) -> FoundModel:
    """The model with the list of its files stored beside the record, which stays small that way."""
    model = found.model
    if model is None or model.files is None:
        return found
    recorded = RecordedFiles(run_id=run_id, model_uri=model.uri, files=found.files, documents=found.documents)
    uri, sha256 = services.ledger.keep_model_files(recorded)
    files = replace(model.files, listing_uri=uri, listing_sha256=sha256)
    return replace(found, model=replace(model, files=files))


def try_elsewhere(
    services: Services, held: Held, job: RecordedJob, reason: str | None = None, cost: Decimal | None = None
) -> FlowResult:
    """The job found no capacity: the run waits for its next candidate. Without a reason, the job had been given up."""
    giving_up, now = held.record.submission.giving_up, services.clock.now()
    why = WHY if reason is None else NO_CAPACITY
    text = giving_up.reason if giving_up is not None and reason is None else reason or ""
    waiting = stocked_out(held.record, job, text, now=now, attempt=services.attempt, why=why, cost=cost)
    transitions.put_in_queue(services, held, waiting)
    message = f"{job.name} found no capacity; next: {current_candidate(waiting).text}"
    result = FlowResult(message=message, run_id=waiting.run_id, severity="NOTICE", event=LogEvent.RUN_WAITS)
    return replace(result, is_due=True)


def _try_again(services: Services, held: Held, job: Job, loss: JobLoss) -> FlowResult | None:
    """The job was lost: the run waits for its next job on the same candidate. None: it is not retried.

    The notice comes before the record, like that of every state before the end.
    """
    record, now = held.record, services.clock.now()
    machines = retry_machines(record, loss, services.policy().machines, now)
    if machines is None:
        return None
    cost = _known_cost(services, record, job)
    waiting = with_retry(record, job, loss, machines, cost, now=now, attempt=services.attempt)
    if waiting.submission.machines != record.submission.machines:
        waiting = _with_hourly_price(services, waiting)
    services.notices.publish(run_retried(waiting, services.ledger.record_uri(waiting.run_id)))
    transitions.put_in_queue(services, held, waiting)
    message = f"{job.name} was lost; {waiting.problems[-1]}"
    result = FlowResult(message=message, run_id=waiting.run_id, severity="NOTICE", event=LogEvent.RUN_WAITS)
    return replace(result, made_room=True)


def _with_hourly_price(services: Services, record: RunRecord) -> RunRecord:
    """The record with the price per hour of its larger machines; the most that the run may cost stays."""
    request = record.request
    if request is None or request.estimate is None or services.prices is None:
        return record
    with suppress(PolicyInvalid):
        per_hour = estimate_of(candidates_of(record), services.prices()).per_hour
        return replace(
            record, request=replace(request, estimate=replace(request.estimate, per_hour=per_hour))
        )
    return record


def _explain_failure(end: finish.End) -> str | None:
    has_succeeded = end.record.state is RunState.SUCCEEDED and end.record.tuning is None
    return None if has_succeeded else explain_failure(end)


def _log_to_experiment(end: finish.End) -> None:
    spec, job = spec_of(end.record), end.record.job
    if spec is not None and spec.experiment is not None and job is not None:
        run = experiment_run(end.record, spec, spec.experiment, job_region(job.name))
        end.services.jobs.keep_experiment_run(run)


_OF_JOB: Mapping[str, finish.Step] = {
    REASON: _explain_failure,
    EVALUATION: evaluate,
    CHAMPION: compare_with_champion,
    REGISTRY: register_model,
    EXPERIMENT: _log_to_experiment,
    UTILIZATION: read_utilization,
}
STEPS: Mapping[str, finish.Step] = {**finish.STEPS_WITHOUT_JOB, **_OF_JOB}
"""What follows the end of a run that had a job, in this order."""
