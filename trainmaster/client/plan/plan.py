"""The plan of a request: what it means, what Vertex AI would get, what it would cost, and what would happen first. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from trainmaster.client.plan.outlook import LimitNow, Outlook
from trainmaster.client.submission.examination import Examination
from trainmaster.orchestrator.core.admission.candidates import Candidate, parse_candidates, quota_class
from trainmaster.orchestrator.core.admission.cost import estimate
from trainmaster.orchestrator.core.admission.prices import Prices
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.requests.matrix import run_documents
from trainmaster.orchestrator.core.requests.submission import Target, submission_of
from trainmaster.orchestrator.core.runs.record import Estimate

TRAINER_ACCOUNT = "tm-trainer@{project}.iam.gserviceaccount.com"
"""Runs the jobs whose request names no account: TRAINMASTER_TRAINER_ACCOUNT in trainmaster/deploy/topology.yaml."""
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
class Plan:
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

    @property
    def document(self) -> dict[str, Any]:
        document: Any = encoded(self)
        return dict(document)


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
        service_account=TRAINER_ACCOUNT.format(project=context.project),
    )
    return Plan(
        project=context.project,
        region=context.region,
        policy=terms.source,
        dialect=request.dialect,
        request=request.document,
        warnings=tuple(map(str, request.warnings)),
        jobs=tuple(
            _job(candidate, target, terms.prices, _label(candidate.number - len(request.pools)))
            for candidate in candidates
        ),
        runs=request.runs if request.runs > 1 else None,
        not_checked=(
            "the queue, limits and caps of a deployment",
            "whether the file was submitted before",
        ),
    )


def _label(number: int) -> str:
    """Of a candidate by its number from the request itself, which has 0."""
    if number < 0:
        return "pool"
    return f"fallback {number}" if number else "job"


def _job(candidate: Candidate, target: Target, prices: Prices, label: str) -> PlannedJob:
    submission = submission_of(RUN_ID, candidate.spec, replace(target, region=candidate.region))
    return PlannedJob(
        number=candidate.number,
        label=label,
        region=candidate.region,
        machines=candidate.machines,
        quota_class=quota_class(candidate),
        estimate=estimate(candidate.spec, candidate.region, prices),
        parent=submission.parent,
        kind=submission.kind,
        body=submission.body,
    )
