"""What the policy's retention would remove now, decided as the service decides it."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from trainmaster.client.clients import Clients
from trainmaster.client.errors import ClientRefused, NotFound
from trainmaster.client.find import Run, read_run
from trainmaster.client.records import read_bytes
from trainmaster.client.rules.champions import list_champions
from trainmaster.client.rules.listing import read_book
from trainmaster.client.runs.admission_objects import active_runs
from trainmaster.client.runs.listing import KeptIndex
from trainmaster.client.submission.terms import deployed_policy
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.retention.cleaning import (
    OF_RULE,
    REIGNED,
    Decision,
    Round,
    decide,
    prefixes_of,
    runs_in,
)
from trainmaster.orchestrator.core.retraining.rule import Rule, template_object
from trainmaster.orchestrator.core.runs.index import IndexRow
from trainmaster.orchestrator.core.sizes import MAX_REQUEST_BYTES

CLEAN_PLAN_SCHEMA = "clean_plan.v1"
READS_AT_ONCE = 8


@dataclass(frozen=True, kw_only=True)
class PlannedRun:
    """What goes of a run and why other parts stay, and the objects that go with it, their number and size."""

    decision: Decision
    objects: int = 0
    size_bytes: int = 0

    @property
    def row(self) -> IndexRow:
        return self.decision.row

    @property
    def document(self) -> dict[str, Any]:
        """An entry of schemas/clean_plan.v1.schema.json."""
        row, parts, stays = self.row, encoded(self.decision.gone), encoded(self.decision.stays)
        of_run = {"run_id": row.run_id, "model_name": row.model_name, "team": row.team}
        known = {key: value for key, value in of_run.items() if value is not None}
        sizes = {"objects": self.objects, "size_bytes": self.size_bytes}
        return {**known, "parts": parts, "stays": stays, **sizes}


@dataclass(frozen=True, kw_only=True)
class CleanPlan:
    """The runs of which something is no longer kept, newest first; `bound_reached`: there may be more.

    `unreadable`: why records cannot be read, of whose runs nothing is removed.
    """

    runs: Sequence[PlannedRun]
    scanned: int
    bound_reached: bool
    unreadable: Sequence[str] = ()

    @property
    def removed_runs(self) -> Sequence[PlannedRun]:
        return [run for run in self.runs if run.decision.gone]

    @property
    def document(self) -> dict[str, Any]:
        """schemas/clean_plan.v1.schema.json."""
        return {
            "schema": CLEAN_PLAN_SCHEMA,
            "runs": [run.document for run in self.runs],
            "objects": sum(run.objects for run in self.runs),
            "size_bytes": sum(run.size_bytes for run in self.runs),
            "scanned": self.scanned,
            "bound_reached": self.bound_reached,
            **({"unreadable": [*self.unreadable]} if self.unreadable else {}),
        }


def read_clean_plan(clients: Clients, now: datetime) -> CleanPlan:
    """The plan for the newest 20,000 runs. Costs a read for each run, and a listing for each that is removed.

    Raises:
        ClientRefused: the policy keeps everything, or a champion cannot be read.
        NotFound: the deployment publishes no policy.
        google.api_core.exceptions.GoogleAPICallError: a bucket cannot be read.
    """
    retention = deployed_policy(clients)[0].retention
    if not retention:
        raise ClientRefused("The policy has no `retention`, so everything is kept.")
    champions, problems = list_champions(clients)
    if problems:
        raise ClientRefused("\n".join(problems))
    histories = (each.champion.history for each in champions)
    reigns = [reign.run_id for history in histories for reign in history]
    index, active = KeptIndex(clients).look(), set(active_runs(clients))
    bucket = clients.context.models_bucket
    of_round, planned, unreadable = Round(began_at=now), list[tuple[Decision, Run]](), list[str]()
    of_round.keep(reigns, REIGNED)
    for rule in read_book(clients).rules:
        of_round.keep(runs_in(rule.document, _template(clients, rule)), OF_RULE)
    with ThreadPoolExecutor(READS_AT_ONCE) as pool:
        runs = pool.map(lambda row: _read_or_reason(clients, row.run_id), index.rows)
        for row, run in zip(index.rows, runs, strict=True):
            if isinstance(run, str):
                unreadable.append(run)
                continue
            decision = decide(of_round, row, run.record, retention, active=active, bucket=bucket, now=now)
            if decision.gone or decision.stays:
                planned.append((decision, run))
        found = list(pool.map(lambda each: _with_size(clients, *each), planned))
    return CleanPlan(
        runs=found, scanned=index.scanned, bound_reached=index.bound_reached, unreadable=unreadable
    )


def _read_or_reason(clients: Clients, run_id: str) -> Run | str:
    try:
        return read_run(clients, run_id)
    except NotFound as reason:
        return str(reason)


def _template(clients: Clients, rule: Rule) -> str:
    """The request of a rule that names one; empty for any other."""
    if rule.template is None:
        return ""
    name = template_object(rule.template.sha256)
    content = read_bytes(clients.storage, clients.context.ledger_bucket, name, MAX_REQUEST_BYTES)
    return (content or b"").decode(errors="replace")


def _with_size(clients: Clients, decision: Decision, run: Run) -> PlannedRun:
    bucket = clients.context.models_bucket
    sizes = [
        blob.size or 0
        for prefix in prefixes_of(run.record, decision.gone, bucket)
        for blob in clients.storage.list_blobs(bucket, prefix=prefix, fields="items(name,size),nextPageToken")
    ]
    return PlannedRun(decision=decision, objects=len(sizes), size_bytes=sum(sizes))
