"""Records what a failed job's log says about the failure, before the status and the notice of the end are written.

The log may arrive after the end: until LOG_DELAY has passed, the reconciler reads it again. Whatever the log service
does, the run has ended, and later steps wait no longer than that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from trainmaster.orchestrator.core.completion import explanation
from trainmaster.orchestrator.core.completion.replica_exit import parse_exit
from trainmaster.orchestrator.core.errors import AccessDenied, ServiceFailed
from trainmaster.orchestrator.core.runs.job import Failure
from trainmaster.orchestrator.core.runs.record import RunRecord, short_reason
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.flows.services import Services
from trainmaster.orchestrator.stores.ledger import Held

LATE = f"it showed no reason within {explanation.LOG_DELAY.total_seconds():g} s of the end"


@dataclass(frozen=True, kw_only=True)
class _Answer:
    """What the log reported by trial (None: the job itself), and why the rest is missing.

    `may_come`: the rest may still arrive.
    """

    found: Mapping[str | None, Failure] = field(default_factory=dict)
    missing: str | None = None
    may_come: bool = False


def explain_failure(services: Services, held: Held) -> Held | str:
    """The record with what the log reports about the failed job or its first failed trials; or what is still missing.

    Costs nothing for a run without a failure. Safe to repeat.

    Raises:
        RecordMoved: the record kept changing.
    """
    questions = explanation.questions_about(held.record)
    if not questions:
        return held
    answer, now = _ask(services, questions), services.clock.now()
    # Only the notice of a failure is worth waiting for.
    record, since = held.record, now - held.record.history[-1].at
    may_wait = record.state is RunState.FAILED and since < explanation.LOG_DELAY
    if answer.may_come and not answer.found and may_wait:
        return f"the job's log: {answer.missing}"

    def with_reason(record: RunRecord) -> RunRecord | None:
        known = explanation.with_explanation(record, answer.found)
        problem = "" if answer.found or answer.missing is None else _problem(record, answer.missing)
        if problem and problem not in known.problems:
            known = replace(known, problems=(*known.problems, problem))
        return None if known == record else replace(known, updated_at=now, attempt=services.attempt)

    return services.ledger.update(held, with_reason)


def _ask(services: Services, questions: Sequence[explanation.Question]) -> _Answer:
    """The answers to the questions, up to the first that cannot be asked."""
    found: dict[str | None, Failure] = {}
    missing: str | None = None
    for question in questions:
        try:
            entries = _read(services, question)
        except AccessDenied as denied:
            return _Answer(found=found, missing=f"{denied}; `trainmaster deploy` grants it")
        except ServiceFailed as failed:
            return _Answer(found=found, missing=short_reason(str(failed)), may_come=True)
        failure = explanation.first_failure(entries, question.words, runs_script=question.runs_script)
        if failure is not None:
            found[question.trial_id] = failure
        elif not explanation.has_arrived(entries):
            missing = LATE
    return _Answer(found=found, missing=missing, may_come=missing is not None)


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
