"""Scores the model of a run and the champion on the same data, by a job of an account that trains nothing.

The model is copied to the champions bucket first, by the generations that its run recorded: what is scored is what is
promoted, and the evaluation's account reads no bucket that training jobs write.
"""

from dataclasses import replace
from functools import partial
from typing import Any

from trainmaster.orchestrator.core.champions.copy import ModelCopy, NotCopied
from trainmaster.orchestrator.core.completion.model import parse_scores
from trainmaster.orchestrator.core.deployment_names import evaluation_account, name_prefix
from trainmaster.orchestrator.core.documents.faults import Refused
from trainmaster.orchestrator.core.job_names import job_region
from trainmaster.orchestrator.core.requests import evaluation as asked
from trainmaster.orchestrator.core.requests.draft import Draft
from trainmaster.orchestrator.core.requests.spec import spec_from
from trainmaster.orchestrator.core.requests.submission import Submission, Target
from trainmaster.orchestrator.core.runs.end import (
    CHALLENGER,
    CHAMPION,
    CHAMPION_RUN,
    EVALUATION,
    FollowUp,
)
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.flows.completion.copying import copy_model
from trainmaster.orchestrator.flows.lifecycle.finish import End
from trainmaster.orchestrator.flows.lifecycle.follow_up import FollowUpJob, begin
from trainmaster.orchestrator.flows.services import Services


def evaluate(end: End) -> str | None:
    """What the evaluation still waits for; None: it is over, or the request asks for none."""
    services, record = end.services, end.record
    is_begun = record.completion is not None and record.completion.evaluation is not None
    if record.request is None or not (is_begun or record.awaits_evaluation):
        return None
    if not is_begun:
        waits = _begin(end, record.request.document)
        if waits is not None:
            return waits
    document = asked.evaluation_document(record.request.document, services.policy())
    if document is None:
        return None
    return FollowUpJob(
        end=end,
        name=EVALUATION,
        spec=spec_from(document),
        submission=partial(_submission, services, record, document),
        scores=lambda known: parse_scores(
            services.champion_copies.scores(known.output_uri),
            [name for name in (CHALLENGER, CHAMPION) if name in known.inputs],
        ),
    ).advance()


# Any: a checked document.
def _begin(end: End, document: Any) -> str | None:
    """Record what is scored, or why nothing can be; or return what the copy of the model waits for."""
    services, record, team = end.services, end.record, end.record.source.team
    model_name, inputs, failure = document["model_name"], dict[str, str](), None
    refusal = _refusal(end, document)
    copied = copy_model(end, model_name) if refusal is None else NotCopied(reason=refusal)
    match copied:
        case str():
            return copied
        case NotCopied():
            failure = copied.reason
        case ModelCopy():
            champion = services.champions.find(model_name, team)
            current = champion.current if champion else None
            inputs = {CHALLENGER: copied.uri, asked.DATA: document["champion"]["evaluate"]["data"]}
            if current is not None:
                inputs |= {CHAMPION: current.model_uri, CHAMPION_RUN: current.run_id}
    output_uri = asked.evaluation_output_uri(services.buckets.champions, team, model_name, record.run_id)
    end.held = begin(services, end.held, EVALUATION, inputs, output_uri, failure=failure)
    return None


def _refusal(end: End, document: Any) -> str | None:
    """Why the policy of now does not allow the evaluation."""
    rules = end.services.request_rules().of_team(end.record.source.team, end.record.run_id)
    if isinstance(rules, Refused):
        return f"it is no longer allowed: {rules.faults[0]}"
    draft = Draft(document=document, policy=rules.policy, region=document["region"])
    faults = list(asked.evaluation_faults(draft, rules.today))
    return f"it is no longer allowed: {faults[0]}" if faults else None


def _submission(services: Services, record: RunRecord, document: Any, known: FollowUp) -> Submission:
    target = account_target(services, record)
    return asked.evaluation_submission(record.run_id, document, known.inputs, known.output_uri, target)


def account_target(services: Services, record: RunRecord) -> Target:
    """Where a job that follows the run is submitted, and the account that scores models, as which it runs."""
    return replace(
        services.target,
        region=job_region(record.job.name) if record.job else services.target.region,
        service_account=evaluation_account(
            record.source.team, services.target.project, name_prefix(services.target.deployment)
        ),
    )
