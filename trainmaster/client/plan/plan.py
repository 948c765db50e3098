"""The plan of a request: what it means, what Vertex AI would get, what it would cost, and what would happen first."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from trainmaster.client.clients import Clients
from trainmaster.client.errors import NotFound
from trainmaster.client.find import read_document, read_run
from trainmaster.client.plan.outlook import LimitNow, Outlook, limits_now, outlook
from trainmaster.client.records import Encoded
from trainmaster.client.runs.admission_objects import read_admission_objects
from trainmaster.client.runs.listing import Filters, list_runs
from trainmaster.client.submission.examination import Examination
from trainmaster.client.submission.terms import Terms
from trainmaster.orchestrator.core.admission.candidates import Candidate, parse_candidates, quota_class
from trainmaster.orchestrator.core.admission.cost import estimate, with_follow_ups
from trainmaster.orchestrator.core.deployment_names import account_email
from trainmaster.orchestrator.core.names import (
    is_run_id,
    message_status_object,
    run_id_in_group,
    status_object,
)
from trainmaster.orchestrator.core.requests.matrix import run_documents
from trainmaster.orchestrator.core.requests.request import Request
from trainmaster.orchestrator.core.requests.submission import Target, submission_of
from trainmaster.orchestrator.core.runs.record import Estimate, RunRecord

PLAN_SCHEMA = "plan.v1"
RUN_ID = "dry-run"
"""The run id in the planned job, as in a self-test's: the real one is derived from the event."""


@dataclass(frozen=True, kw_only=True)
class PlannedJob:
    """One candidate: the job as Vertex AI would get it, and what it would cost.

    `label`: `pool`, `job` for the request itself, or `fallback 1`.
    """

    number: int
    label: str
    region: str
    machines: str
    quota_class: str
    estimate: Estimate
    parent: str
    kind: str
    body: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class SeenEvent:
    """What an earlier event of the same file or key has started."""

    name: str
    state: str
    run_id: str | None
    same_request: bool
    starts_again: bool
    """Whether submitting the file once more starts another run: always for a file, never for a key."""


@dataclass(frozen=True, kw_only=True)
class Plan(Encoded):
    """schemas/plan.v1.schema.json. `outlook` and `limits` are None where the ledger was not read."""

    schema: str = PLAN_SCHEMA
    project: str
    region: str
    policy: str
    """Where the policy comes from, in words."""
    dialect: str
    request: Mapping[str, Any]
    warnings: tuple[str, ...]
    jobs: tuple[PlannedJob, ...]
    """Of a request with a matrix, those of its first run."""
    runs: int | None = None
    """How many runs a matrix asks for."""
    outlook: Outlook | None = None
    limits: tuple[LimitNow, ...] | None = None
    seen: tuple[SeenEvent, ...] = ()
    not_checked: tuple[str, ...] = ()


def plan_of(examination: Examination) -> Plan | None:
    """The plan without a look at the ledger: its jobs are the request's own, then each fallback's, as they are tried.

    None without a sound request.
    """
    request, terms, context = examination.request, examination.terms, examination.terms.context
    if request is None:
        return None
    candidates = parse_candidates(run_documents(request.document)[0], request.pools)
    target = Target(
        project=context.project,
        region=context.region,
        models_bucket=context.models_bucket,
        # As TRAINMASTER_TRAINER_ACCOUNT in trainmaster/deploy/topology.yaml.
        service_account=account_email("trainer", context.project, context.prefix),
        deployment=context.deployment,
    )
    return Plan(
        project=context.project,
        region=context.region,
        policy=terms.source,
        dialect=request.dialect,
        request=request.document,
        warnings=tuple(map(str, request.warnings)),
        jobs=tuple(
            _job(candidate, target, terms, request, _label(candidate.number - len(request.pools)))
            for candidate in candidates
        ),
        runs=request.runs if request.runs > 1 else None,
        not_checked=("the queue, limits and caps of a deployment", "whether the file was submitted before"),
    )


def plan_with_ledger(
    clients: Clients, examination: Examination, *, key: str | None = None, now: datetime
) -> Plan | None:
    """The plan with what the deployment's ledger shows now; None without a sound request. Submits and writes nothing.

    Args:
        clients: of the context that would run the request.
        examination: of the request, against the terms of the deployment there.
        key: the idempotency key with which it would be published, instead of dropped.
        now: when it would arrive.

    Raises:
        google.api_core.exceptions.GoogleAPICallError: the ledger cannot be read.
    """
    plan, request, policy = plan_of(examination), examination.request, examination.terms.policy
    if plan is None or request is None:
        return None
    listings = read_admission_objects(clients, now)
    return replace(
        plan,
        outlook=outlook(request, policy, listings, now),
        limits=limits_now(request, policy, listings.slots),
        seen=tuple(_seen_events(clients, request, examination.object_name, key)),
        not_checked=("what Vertex AI would answer: its quotas and free machines",),
    )


def last_run(clients: Clients, examination: Examination) -> RunRecord | None:
    """The newest run of the request's model and team, of a matrix its first; None if no such run can be read.

    Raises:
        google.api_core.exceptions.GoogleAPICallError: the ledger cannot be read.
    """
    request = examination.request
    filters = Filters(model=request.spec.model_name if request else "", team=examination.terms.team)
    for row in list_runs(clients, filters, limit=1).rows:
        with suppress(NotFound):  # a damaged record, or one of a newer version, cannot be compared
            run_id = row.run_id if row.group is None else run_id_in_group(row.group, 1)
            return read_run(clients, run_id).record
    return None


def _seen_events(
    clients: Clients, request: Request, object_name: str, key: str | None
) -> Iterator[SeenEvent]:
    """Earlier events with the same file name or key."""
    of_key = message_status_object(message_id="", idempotency_key=key) if key is not None else ""
    status = read_document(clients, of_key or status_object(object_name))
    if status is None:
        return
    run_id = status.get("run_id")
    record = None
    with suppress(NotFound):  # a damaged record says nothing about this request
        record = read_run(clients, str(run_id)).record if is_run_id(str(run_id)) else None
    document = record.request.document if record is not None and record.request is not None else None
    yield SeenEvent(
        name=key or object_name,
        state=str(status.get("state")),
        run_id=run_id if record is not None else None,
        same_request=document == run_documents(request.document)[0],
        starts_again=key is None,
    )


def _label(number: int) -> str:
    """Of a candidate by its number from the request itself, which has 0."""
    if number < 0:
        return "pool"
    return f"fallback {number}" if number else "job"


def _job(candidate: Candidate, target: Target, terms: Terms, request: Request, label: str) -> PlannedJob:
    region, prices = candidate.region, terms.prices
    submission = submission_of(RUN_ID, candidate.spec, replace(target, region=region))
    own = estimate(candidate.spec, region, prices)
    return PlannedJob(
        number=candidate.number,
        label=label,
        region=region,
        machines=candidate.machines,
        quota_class=quota_class(candidate),
        estimate=with_follow_ups(own, request.document, region, terms.policy, prices),
        parent=submission.parent,
        kind=submission.kind,
        body=submission.body,
    )
