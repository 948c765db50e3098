"""Tries out a champion's model, before its version in the Model Registry gets the alias.

record    claims the smoke test; the copy of the model is already there
job       loads the model and predicts, as another account: flows/lifecycle/follow_up.py
record    has its outcome
alias     moves, if the model predicted; otherwise it stays where it is
"""

from collections.abc import Callable
from functools import partial

from trainmaster.orchestrator.core.champions.smoke import (
    EXAMPLE_NAME,
    FORMATS,
    MODEL,
    SMOKE_FOLDER,
    smoke_spec,
)
from trainmaster.orchestrator.core.completion.model import parse_scores
from trainmaster.orchestrator.core.policy.policy import EvaluationPolicy
from trainmaster.orchestrator.core.requests.evaluation import evaluation_output_uri, follow_up_submission
from trainmaster.orchestrator.core.requests.spec import JobSpec
from trainmaster.orchestrator.core.requests.submission import Submission
from trainmaster.orchestrator.core.runs.end import SMOKE, Completion, FollowUp, Model
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.flows.completion.evaluation import account_target
from trainmaster.orchestrator.flows.lifecycle.finish import End
from trainmaster.orchestrator.flows.lifecycle.follow_up import FollowUpJob, begin
from trainmaster.orchestrator.flows.services import Services


def smoke_test(end: End, spec: JobSpec, model: Model, copy_uri: Callable[[], str]) -> str | None:
    """What the smoke test of the model's copy still waits for; None: it is over. Safe to repeat."""
    services, run_id = end.services, end.record.run_id
    if (end.record.completion or Completion()).smoke is None:
        uri, known = copy_uri(), model.format or "unknown"
        asked = spec.champion.example if spec.champion is not None else None
        example = asked or f"{uri.rpartition('/')[0]}/{EXAMPLE_NAME}"
        failure = None if known in FORMATS else f"no program of ours loads a model of the format {known}"
        bucket, folder = services.buckets.champions, f"{SMOKE_FOLDER}/{spec.model_name}"
        output_uri = evaluation_output_uri(bucket, end.record.source.team, folder, run_id)
        inputs = {"model": uri, "format": known, "example": example}
        end.held = begin(services, end.held, SMOKE, inputs, output_uri, failure=failure)
    terms = services.policy().evaluation
    return FollowUpJob(
        end=end,
        name=SMOKE,
        spec=smoke_spec(spec, terms, {}),
        submission=partial(_submission, services, end.record, spec, terms),
        scores=lambda known: parse_scores(
            services.champion_copies.scores(known.output_uri), [MODEL], "smoke test"
        ),
    ).advance()


def smoke_text(record: RunRecord) -> str | None:
    """The outcome of the run's smoke test, for people; None without one."""
    found = record.completion.smoke if record.completion else None
    if found is None:
        return None
    if found.failure is not None:
        return f"failed: {found.failure}"
    return "is not over" if found.scores is None else "passed"


def _submission(
    services: Services, record: RunRecord, spec: JobSpec, terms: EvaluationPolicy, known: FollowUp
) -> Submission:
    own = smoke_spec(spec, terms, {**known.inputs, "output": known.output_uri})
    target = account_target(services, record)
    return follow_up_submission(record.run_id, SMOKE, own, known.output_uri, target)
