"""The steps after a run's end that are left: one that fails is repeated a few times, later and later."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from trainmaster.orchestrator.core.errors import TrainmasterError
from trainmaster.orchestrator.core.runs.drop_status import failure_text
from trainmaster.orchestrator.core.runs.end import EVALUATION, Completion, FailedStep
from trainmaster.orchestrator.core.runs.record import RunRecord

REASON, CHAMPION, REGISTRY, EXPERIMENT = "reason", "champion", "registry", "experiment"
"""The steps that read why a run failed, compare its model with the champion, register it, and log it to its experiment."""
UTILIZATION = "utilization"
"""The step that reads what the machines did, the last one: a slow read delays no other step."""
END_STEPS = (
    REASON,
    "index",
    "status",
    EVALUATION,
    CHAMPION,
    REGISTRY,
    EXPERIMENT,
    "notices",
    "cap_notice",
    "queue",
    "slots",
    UTILIZATION,
)
"""The steps that follow a run's end, in their order, as `completion.steps_done` names them."""
OUTAGE_ATTEMPTS_MAX = 100
"""Of a step that fails for a known reason, for example a service that does not answer: about four days."""
BUG_ATTEMPTS_MAX = 10
"""Of a step that fails for an unforeseen reason: about three hours, each attempt with a critical log line."""
FIRST_WAIT, LONGEST_WAIT = timedelta(minutes=1), timedelta(hours=1)
_DOUBLINGS_MAX = 6


def is_over(record: RunRecord, name: str) -> bool:
    """Whether the step is done, or has failed for the last time."""
    completion = record.completion or Completion()
    failed = (completion.steps_failed or {}).get(name)
    return name in completion.steps_done or (failed is not None and failed.next_at is None)


def all_over(record: RunRecord) -> bool:
    """Whether no step is left: each is done, or was given up."""
    return all(is_over(record, name) for name in END_STEPS)


def is_due(record: RunRecord, name: str, now: datetime) -> bool:
    """Whether the step must be run now."""
    failed = ((record.completion or Completion()).steps_failed or {}).get(name)
    return not is_over(record, name) and (failed is None or failed.next_at is None or failed.next_at <= now)


def with_outcomes(
    record: RunRecord,
    done: tuple[str, ...],
    failed: Mapping[str, Exception],
    now: datetime,
) -> RunRecord:
    """The record with these steps done, and the attempts of those that failed; a last one becomes a problem."""
    completion = record.completion or Completion()
    names = tuple(dict.fromkeys((*completion.steps_done, *done)))
    before = completion.steps_failed or {}
    still = ((name, error) for name, error in failed.items() if name not in names)
    again = {name: _next_attempt(before.get(name), error, now) for name, error in still}
    left = {name: step for name, step in {**before, **again}.items() if name not in names}
    ended = replace(completion, steps_done=names, steps_failed=left or None)
    problems = (_problem(name, step) for name, step in again.items() if step.next_at is None)
    return replace(record, completion=ended, problems=(*record.problems, *problems))


def _next_attempt(before: FailedStep | None, error: Exception, now: datetime) -> FailedStep:
    """The first repetition follows at once, with the next reconcile pass."""
    attempts = 1 if before is None else before.attempts + 1
    known = isinstance(error, TrainmasterError)
    doubled = FIRST_WAIT * 2 ** min(max(attempts - 2, 0), _DOUBLINGS_MAX)
    wait = min(doubled, LONGEST_WAIT) if attempts > 1 else timedelta()
    most = OUTAGE_ATTEMPTS_MAX if known else BUG_ATTEMPTS_MAX
    next_at = None if attempts >= most else now + wait
    return FailedStep(attempts=attempts, error=failure_text(error), next_at=next_at)


def _problem(name: str, failed: FailedStep) -> str:
    return f"step {name!r} after the run's end was given up after {failed.attempts} attempts: {failed.error}"
