"""Further jobs of a run whose job had started and was lost: which may follow, when, on which machines, at what cost."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

from trainmaster.orchestrator.core.admission.candidates import current_candidate, pools_of, with_machines
from trainmaster.orchestrator.core.admission.waiting import may_wait
from trainmaster.orchestrator.core.policy.memory import next_larger
from trainmaster.orchestrator.core.policy.policy import Machines
from trainmaster.orchestrator.core.requests.spec import JobSpec, WorkerPool
from trainmaster.orchestrator.core.runs.job import Job, JobLoss, RetryOn
from trainmaster.orchestrator.core.runs.moves import with_job, with_state
from trainmaster.orchestrator.core.runs.record import AbandonedJob, RunRecord, Waiting, short_reason
from trainmaster.orchestrator.core.runs.states import RunState

BACK_OFF = (timedelta(minutes=1), timedelta(minutes=5), timedelta(minutes=15))
"""How long a run waits before its first, second and third retry."""


def retries_of(record: RunRecord) -> int:
    """How often the run was retried."""
    return sum(job.was_lost for job in record.submission.abandoned_jobs)


def followed_texts(record: RunRecord) -> list[str]:
    """How each job that another one follows ended, and what followed, oldest first; of a lost one also the run's problem."""
    of = current_candidate(record).spec.scheduling.retries if record.request is not None else 0
    texts, lost = list[str](), 0
    for job in record.submission.abandoned_jobs:
        lost += job.was_lost
        retry = f"retry {lost} of {of} after {job.why.replace('_', ' ')}"
        texts.append(f"{retry if job.was_lost else 'moved to the next candidate'}: {job.reason}")
    return texts


def tries_of(spec: JobSpec, machines: Sequence[Machines]) -> Sequence[JobSpec]:
    """The specs of the jobs that a run may have, each as dear as it may be; `machines` are the policy's."""
    tries = [spec]
    for _ in range(spec.scheduling.retries):
        if RetryOn.OUT_OF_MEMORY in spec.scheduling.retry_on:
            pools = [pool for _, pool in pools_of(spec.cluster)]
            larger = {pool.machine: _larger_machine(pool, machines) or pool.machine for pool in pools}
            spec = with_machines(spec, larger)
        tries.append(spec)
    return tries


def _larger_machine(pool: WorkerPool, machines: Sequence[Machines]) -> str | None:
    accelerator = (pool.accelerator.type, pool.accelerator.count) if pool.accelerator else None
    larger = next_larger(pool.machine, machines, accelerator)
    return larger[0] if larger is not None else None


def retry_machines(
    record: RunRecord, loss: JobLoss, machines: Sequence[Machines], now: datetime
) -> Mapping[str, str] | None:
    """The machine types that replace others in the run's next job; None: there is no next one.

    A run whose job ran out of memory needs a larger machine. All pools on machines of that type get it: replicas alike
    need as much.
    """
    spec = current_candidate(record).spec
    known = record.submission.machines or {}
    is_asked = loss.why in spec.scheduling.retry_on and retries_of(record) < spec.scheduling.retries
    if not is_asked or not may_wait(record, now):
        return None
    if loss.why != RetryOn.OUT_OF_MEMORY:
        return known
    pool = spec.cluster.pools[loss.pool] if loss.pool < len(spec.cluster.pools) else None
    larger = _larger_machine(pool, machines) if pool is not None else None
    if pool is None or larger is None:
        return None
    return {
        **{old: larger if new == pool.machine else new for old, new in known.items()},
        pool.machine: larger,
    }


def with_retry(
    record: RunRecord,
    job: Job,
    loss: JobLoss,
    machines: Mapping[str, str],
    cost: Decimal | None,
    *,
    now: datetime,
    attempt: str,
) -> RunRecord:
    """The record of a run whose job was lost: the job is abandoned, and the same candidate due after a pause.

    `cost` is the job's. The lease stays, as after a stockout: the attempt that holds it may be about to record the job.
    """
    known = with_job(record, job, now=now, attempt=attempt)
    candidate, number, reason = current_candidate(record), retries_of(record) + 1, short_reason(loss.reason)
    gone = AbandonedJob(
        job=known.job.name if known.job is not None else job.name,
        candidate=candidate.number,
        reason=reason,
        at=now,
        why=loss.why,
        cost=cost,
    )
    back = with_state(known, RunState.WAITING, entered_at=now, now=now, attempt=attempt)
    submission = replace(
        back.submission,
        lease=record.submission.lease,
        candidate=candidate.number,
        abandoned_jobs=(*record.submission.abandoned_jobs, gone),
        machines=machines or None,
        unanswered=0,
    )
    why = followed_texts(replace(back, submission=submission))[-1]
    until = now + BACK_OFF[min(number, len(BACK_OFF)) - 1]
    waiting = Waiting(reason=why, attempts=0, not_before=until, rests=True)
    admission = replace(back.admission, slots=(), waiting=waiting, refused_since=None)
    problems = (*record.problems, why)
    return replace(
        back, job=None, progress=None, admission=admission, submission=submission, problems=problems
    )
