"""The cost of a run's job, by the service's times and the price table.

A job costs from its start, when it first runs, to its end: waiting in Vertex AI's queue costs nothing, and a job that
never ran costs nothing. Replicas that restarted count throughout. Jobs that found no capacity never ran; those that were
lost count with the cost on record; second jobs, which are cancelled, are not counted.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from decimal import ROUND_HALF_UP, Decimal

from trainmaster.orchestrator.core.admission.candidates import current_candidate
from trainmaster.orchestrator.core.admission.cost import role_prices, unknown_of
from trainmaster.orchestrator.core.admission.prices import Prices
from trainmaster.orchestrator.core.job_names import job_region
from trainmaster.orchestrator.core.requests.spec import JobSpec
from trainmaster.orchestrator.core.runs.end import Cost
from trainmaster.orchestrator.core.runs.job import Job
from trainmaster.orchestrator.core.runs.record import RunRecord

_SMALLEST = Decimal("0.000001")
_SECONDS_PER_HOUR = 3600


def cost_of(record: RunRecord, job: Job, prices: Prices, spec: JobSpec | None = None) -> Cost:
    """What this ended job of the run cost, its last one so far, on the machines of the candidate that was submitted.

    `spec`: of a job that is none of the candidates'.

    Raises:
        ValueError: the run was rejected.
    """
    spec = spec or current_candidate(record).spec
    roles = role_prices(spec, job_region(job.name), prices)
    spans = _spans(job, is_tuning=spec.tuning is not None)
    ran_s = {key: max(0.0, (end - start).total_seconds()) for key, (start, end) in spans.items() if end}
    hours = {key: Decimal(str(seconds)) / _SECONDS_PER_HOUR for key, seconds in ran_s.items()}
    unknown = [
        *(unknown_of(roles) if spans else ()),
        *(f"the end of {key}" for key in spans.keys() - hours.keys()),
    ]
    whole = sum(hours.values(), Decimal(0))
    per_hour = sum((role.per_hour for role in roles.values()), Decimal(0))
    is_known = not unknown
    return Cost(
        currency=prices.currency,
        as_of=prices.as_of,
        ran_s=round(float(whole * _SECONDS_PER_HOUR), 3),
        total=_to_millionth(whole * per_hour) if is_known else None,
        roles={
            name: _to_millionth(whole * role.per_hour) for name, role in roles.items() if not role.unknown
        },
        trials={key: _to_millionth(each * per_hour) for key, each in hours.items()}
        if is_known and spec.tuning is not None
        else None,
        unknown=tuple(sorted(unknown)),
    )


def with_earlier_jobs(cost: Cost, record: RunRecord) -> Cost:
    """The cost of the run's last job, with what the jobs before it cost that had started."""
    ran = [job for job in record.submission.abandoned_jobs if job.cost is not None or job.was_lost]
    if not ran:
        return cost
    unknown = [f"the cost of {job.job}" for job in ran if job.cost is None]
    earlier = sum((job.cost or Decimal(0) for job in ran), Decimal(0))
    total = None if cost.total is None or unknown else cost.total + earlier
    return replace(cost, total=total, earlier_jobs=earlier, unknown=tuple(sorted((*cost.unknown, *unknown))))


def with_evaluation_cost(cost: Cost, of_evaluation: Cost) -> Cost:
    """The cost of the run with that of a job that scored its model, or tried it out."""
    amount, unknown = of_evaluation.total, tuple(sorted({*cost.unknown, *of_evaluation.unknown}))
    total = None if cost.total is None or amount is None else cost.total + amount
    both = None if amount is None else (cost.evaluation or 0) + amount
    return replace(cost, total=total, evaluation=both, unknown=unknown)


def cost_without_job(record: RunRecord) -> Cost | None:
    """The cost of a run that ends between two jobs; None for one that never had a job that ran, or without an estimate."""
    estimate = record.request.estimate if record.request is not None else None
    if estimate is None:
        return None
    nothing = Cost(currency=estimate.currency, as_of=estimate.as_of, total=Decimal(0))
    cost = with_earlier_jobs(nothing, record)
    return None if cost is nothing else cost


def final_cost(record: RunRecord) -> Decimal | None:
    """What an ended run has cost in all: nothing without a job. None: unknown, or another job may cost as well."""
    submission, cost = record.submission, record.completion.cost if record.completion else None
    is_open = bool(submission.second_jobs) or submission.second_job_check_at is not None
    smoke = record.completion.smoke if record.completion else None
    is_open = is_open or record.awaits_evaluation or (smoke is not None and not smoke.is_over)
    if record.request is None or not record.ended or is_open:
        return None
    if record.job is None and cost is None:
        return Decimal(0)
    return cost.total if cost is not None else None


def _spans(job: Job, *, is_tuning: bool) -> Mapping[str, tuple[datetime, datetime | None]]:
    """When the job, or each trial of a tuning, started and ended: a trial without an end ended with the job."""
    if is_tuning:
        return {
            trial.id: (trial.start_time, trial.end_time or job.end_time)
            for trial in job.trials
            if trial.start_time is not None
        }
    return {"the job": (job.start_time, job.end_time)} if job.start_time is not None else {}


def _to_millionth(amount: Decimal) -> Decimal:
    """To a millionth, as far as prices are known."""
    return amount.quantize(_SMALLEST, rounding=ROUND_HALF_UP)
