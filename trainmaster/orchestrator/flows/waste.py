"""Finds running jobs that waste their machines by the policy's `waste`: their GPUs idle, or they say nothing for long.

A tick that the policy asks for costs a list of jobs for each kind and region, one query of Cloud Monitoring for all jobs,
and one of their logs, however many runs there are; records are read only of the jobs that are found.

    notice    the run's only one of this type: after a crash here the next tick publishes it again, with the same id
    record    has `wasteful`, and with it a problem
    job       is cancelled if the policy says so, as by an order: the reconciler repeats it until the job has ended
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from operator import attrgetter

from trainmaster.orchestrator.core.completion.machine_metrics import MachineMetric, MetricQuery
from trainmaster.orchestrator.core.errors import RecordDamaged, RecordMoved, ServiceFailed
from trainmaster.orchestrator.core.job_names import JobKind, job_id
from trainmaster.orchestrator.core.names import RUN_LABEL, is_run_id
from trainmaster.orchestrator.core.notices.notice import run_wasteful
from trainmaster.orchestrator.core.policy.waste import ThenDo, WastePolicy
from trainmaster.orchestrator.core.runs.job import Job, JobState
from trainmaster.orchestrator.core.runs.sender import Sender, Surety
from trainmaster.orchestrator.core.runs.utilization import WasteFound
from trainmaster.orchestrator.flows.lifecycle.status import show
from trainmaster.orchestrator.flows.services import FlowResult, Services
from trainmaster.orchestrator.flows.submission.resume import cancel
from trainmaster.orchestrator.stores.ledger import Marker

JOBS_MAX = 300
"""Whose logs one query can name: those that run longest."""


def find_wasteful(services: Services, active: Sequence[Marker]) -> Iterator[FlowResult]:
    """Report, and cancel if the policy says so, the jobs that waste their machines. `active`: the runs that have not ended."""
    policy = services.policy()
    waste = policy.waste
    if waste is None or not active:
        return
    running = _running_jobs(services, policy.region_names)
    for find in (_idle_jobs, _silent_jobs):
        try:
            for job, reason in find(services, waste, running):
                if (result := _report(services, waste, job, reason)) is not None:
                    yield result
        except ServiceFailed as failed:  # the next tick looks again
            message = f"jobs that waste their machines were not looked for: {failed}"
            yield FlowResult(message=message, severity="WARNING")


def _running_jobs(services: Services, regions: Sequence[str]) -> Mapping[str, Job]:
    """By id, those of runs, the longest running first."""
    listed = (job for region in regions for kind in JobKind for job in services.jobs.active(kind, region))
    started = [job for job in listed if job.state is JobState.RUNNING and job.start_time is not None]
    return {job_id(job.name): job for job in sorted(started, key=attrgetter("start_time"))}


def _started_by(running: Mapping[str, Job], moment: datetime) -> list[str]:
    return [key for key, job in running.items() if job.start_time and job.start_time <= moment]


def _idle_jobs(
    services: Services, waste: WastePolicy, running: Mapping[str, Job]
) -> Iterator[tuple[Job, str]]:
    """Those that ran for the whole window with GPUs that did little; one whose GPUs report nothing is left out."""
    now, window = services.clock.now(), timedelta(seconds=waste.window_s)
    of_age = _started_by(running, now - window)
    if waste.min_gpu_percent is None or not of_age:
        return
    query = MetricQuery(metric=MachineMetric.GPU, since=now - window, until=now)
    for series in services.machine_metrics.list_time_series(query):
        percent = 100 * series.mean
        if series.job_id in of_age and percent < waste.min_gpu_percent:
            reason = f"its GPUs were used {percent:.0f} % in the last {waste.window_s / 60:g} minutes"
            yield running[series.job_id], reason


def _silent_jobs(
    services: Services, waste: WastePolicy, running: Mapping[str, Job]
) -> Iterator[tuple[Job, str]]:
    if waste.silent_s is None:
        return
    since = services.clock.now() - timedelta(seconds=waste.silent_s)
    of_age = _started_by(running, since)[:JOBS_MAX]
    for key in services.job_logs.silent_jobs(of_age, since) if of_age else ():
        yield running[key], f"it has logged nothing for {waste.silent_s} s"


def _report(services: Services, waste: WastePolicy, job: Job, reason: str) -> FlowResult | None:
    """Put it on record and publish it, once a run, and cancel the run if the policy says so."""
    run_id = job.labels.get(RUN_LABEL, "")
    try:
        held = services.ledger.find(run_id) if is_run_id(run_id) else None
        if held is None or held.record.ended or held.record.job is None or held.record.job.name != job.name:
            return None  # a trial's own job, or the run has changed since
        record, now = held.record, services.clock.now()
        if record.wasteful is None:
            found = WasteFound(at=now, reason=reason)
            services.notices.publish(run_wasteful(record, found, services.ledger.record_uri(run_id)))
            problems = (*record.problems, f"the job wastes its machines: {reason}")
            noted = replace(record, wasteful=found, problems=problems, updated_at=now)
            held = services.ledger.replace(held, replace(noted, attempt=services.attempt))
            show(services, held)
        elif waste.then is not ThenDo.CANCEL or record.cancel_requested_at is not None:
            return None
        if waste.then is ThenDo.CANCEL:
            cancel(services, held, Sender(name=f"the policy `waste`: {reason}", by=Surety.EVENT))
    except (RecordMoved, RecordDamaged):  # the next tick looks again; the reconciler reports the damage
        return None
    message = f"{job.name} wastes its machines: {reason}"
    done = f"{message}; it is being cancelled" if waste.then is ThenDo.CANCEL else message
    return FlowResult(message=done, run_id=run_id, severity="NOTICE")
