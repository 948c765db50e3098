"""Records what a failed job's log says about the failure, before the status and the notice of the end are written.

The log may arrive after the end: until LOG_DELAY has passed, the reconciler reads it again. Whatever the log service
does, the run has ended, and later steps wait no longer than that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from trainmaster.orchestrator.core.completion import explanation
from trainmaster.orchestrator.core.completion.replica_exit import parse_exit
from trainmaster.orchestrator.core.errors import AccessDenied, ServiceFailed
from trainmaster.orchestrator.core.runs.job import Failure
from trainmaster.orchestrator.core.runs.record import RunRecord, short_reason
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.flows.lifecycle.finish import End, steps_done
from trainmaster.orchestrator.flows.lifecycle.status import show
from trainmaster.orchestrator.flows.services import Services

LATE = f"it showed no reason within {explanation.LOG_DELAY.total_seconds():g} s of the end"


def explain_failure(end: End) -> str | None:
    """The step `reason`: record what the log reports about the failed job or its first failed trials.

    Reads nothing for a run without a failure. Safe to repeat.

    Raises:
        RecordMoved: the record kept changing.
    """
    services, record = end.services, end.record
    found, missing, may_come = _ask(services, explanation.questions_about(record))
    # Only the notice of a failure is worth waiting for.
    now = services.clock.now()
    since = now - record.history[-1].at
    may_wait = record.state is RunState.FAILED and since < explanation.LOG_DELAY
    if may_come and not found and may_wait:
        return f"the job's log: {missing}"

    def with_reason(record: RunRecord) -> RunRecord | None:
        known = explanation.with_explanation(record, found)
        problem = "" if found or missing is None else _problem(record, missing)
        if problem and problem not in known.problems:
            known = replace(known, problems=(*known.problems, problem))
        return None if known == record else replace(known, updated_at=now, attempt=services.attempt)

    end.held = services.ledger.update(end.held, with_reason)
    if "status" in steps_done(end.record):  # an earlier pass wrote it without the reason
        show(services, end.held)
    return None


def _ask(
    services: Services, questions: Sequence[explanation.Question]
) -> tuple[Mapping[str | None, Failure], str | None, bool]:
    """What the log reported by trial (None: the job itself), why the rest is missing, and whether it may still arrive.

    Only up to the first question that cannot be asked.
    """
    found: dict[str | None, Failure] = {}
    missing: str | None = None
    for question in questions:
        try:
            entries = _read(services, question)
        except AccessDenied as denied:
            return found, f"{denied}; `trainmaster deploy` grants it", False
        except ServiceFailed as failed:
            return found, short_reason(str(failed)), True
        failure = explanation.first_failure(entries, question.words, runs_script=question.runs_script)
        if failure is not None:
            found[question.trial_id] = failure
        elif not explanation.has_arrived(entries):
            missing = LATE
    return found, missing, missing is not None


def _read(services: Services, question: explanation.Question) -> Sequence[explanation.LogEntry]:
    """The end of the log; if other replicas' entries fill it, also that of the replica that the service names."""
    entries = services.job_logs.read(question.query)
    exited = parse_exit(question.words)
    named = exited.replica if exited else None
    wrote = {entry.task for entry in entries} - {explanation.SERVICE}
    if named is None or not wrote or named in wrote:
        return entries
    return (*entries, *services.job_logs.read(replace(question.query, replica=named)))


def _problem(record: RunRecord, missing: str) -> str:
    what = "the job" if record.tuning is None else "trials"
    return f"the job's log does not say why {what} failed: {missing}"
