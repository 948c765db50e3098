"""Champions: the best model under one name, by the metric that its requests declare, and where it came from.

The document is schemas/champion.v1.schema.json.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from trainmaster.orchestrator.core.names import in_team
from trainmaster.orchestrator.core.notices.notice import (
    APPROVAL_NEEDED,
    CHAMPION_PROMOTED,
    CHAMPION_ROLLED_BACK,
    Notice,
    notice_of,
)
from trainmaster.orchestrator.core.requests.spec import Goal, JobSpec
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.sender import Sender

_DIGEST = "@sha256:"


@dataclass(frozen=True, kw_only=True)
class Lineage:
    """Where a model came from, from the event to the hash of its manifest; unknown fields are None.

    `request_uri` and `request_generation` are the dropped file's, the rule's or its template's.
    `image` is the chief's; for Python packages, the executor image. The request names the packages.
    `image_digest` is known only if the request contains it: the service does not report which image it pulled.
    `files_uri` is the ledger's list of the files, with the generations and checksums that the run recorded;
    `metrics_generation` is that of metrics.json in the run's directory.
    """

    source: str
    event_id: str
    event_time: datetime
    request_uri: str | None = None
    request_generation: int | None = None
    message_id: str | None = None
    rule_id: str | None = None
    firing: int | None = None
    image: str
    image_digest: str | None = None
    dataset: str | None = None
    dataset_version: str | None = None
    train_split: str | None = None
    job_name: str | None = None
    trial_id: str | None = None
    manifest_uri: str | None = None
    manifest_sha256: str | None = None
    metrics_uri: str | None = None
    metrics_generation: int | None = None
    files_uri: str | None = None
    files_sha256: str | None = None


def lineage_of(record: RunRecord, spec: JobSpec) -> Lineage:
    """Where the model came from, according to the record and its request."""
    source, model, image = record.source, record.model, spec.cluster.chief.program.image
    best = record.tuning.best_trial if record.tuning else None
    dataset = model.dataset if model else None
    _, has_digest, digest = image.partition(_DIGEST)
    return Lineage(
        source=source.kind,
        event_id=source.event_id,
        event_time=source.event_time,
        request_uri=source.template_uri or source.uri,
        request_generation=source.template_generation or source.generation,
        message_id=source.message_id,
        rule_id=source.rule_id,
        firing=source.firing,
        image=image,
        image_digest=f"sha256:{digest}" if has_digest else None,
        dataset=dataset.name if dataset else None,
        dataset_version=dataset.version if dataset else None,
        train_split=dataset.train_split if dataset else None,
        job_name=record.job.name if record.job else None,
        trial_id=best.id if best else None,
        manifest_uri=model.manifest_uri if model else None,
        manifest_sha256=model.manifest_sha256 if model else None,
        metrics_uri=model.metrics_uri if model else None,
        metrics_generation=model.metrics_generation if model else None,
        files_uri=model.files.listing_uri if model and model.files else None,
        files_sha256=model.files.listing_sha256 if model and model.files else None,
    )


KEPT_REIGNS = 200
KEPT_VERDICTS = 50


@dataclass(frozen=True, kw_only=True)
class Contest:
    """What makes two values comparable. `evaluation_split` None: the metric comes from the training itself.

    With an `evaluation`, the name that the request gives the evaluation, the data set does not matter.
    """

    metric: str
    goal: Goal
    evaluation: str | None = None
    dataset: str | None = None
    evaluation_split: str | None = None
    evaluator: str | None = None
    """The program of the job that measured, where the run's own numbers do not count."""


class Cause(StrEnum):
    PROMOTION = "promotion"
    ROLLBACK = "rollback"


@dataclass(frozen=True, kw_only=True)
class Reign:
    """One model's time as champion. `number` counts from 1; `order_id` names the order that began it.

    `approved_by` gave the order to promote it, where that was needed.
    `model_uri` is the copy in the champions bucket, `trained_uri` where the run saved the model.
    """

    number: int
    cause: Cause
    run_id: str
    model_uri: str
    trained_uri: str
    value: float
    contest: Contest
    since: datetime
    lineage: Lineage
    order_id: str | None = None
    approved_by: Sender | None = None


@dataclass(frozen=True, kw_only=True)
class Registered:
    """The version in the Model Registry to which the alias `champion` was moved, and its run."""

    run_id: str
    model: str
    version: str


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Whether one challenger was promoted, and why; `order_id` names the order that approved or rejected it."""

    run_id: str
    promoted: bool
    reason: str
    at: datetime
    value: float | None = None
    order_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class Pending:
    """A challenger that has won, and waits for an order to approve it. `reign` is as it would begin."""

    reign: Reign
    reason: str
    compared_with: str | None = None
    expires_at: datetime


@dataclass(frozen=True, kw_only=True)
class Champion:
    """The document of one model name. `current` is None until a challenger can be compared.

    At most one challenger is `pending`: a later one that wins replaces it.

    `history` holds the last KEPT_REIGNS reigns up to the current one, oldest first.
    """

    schema: str = "champion.v1"
    model_name: str
    team: str | None = None
    current: Reign | None = None
    history: tuple[Reign, ...] = ()
    considered: tuple[Verdict, ...] = ()
    registered: Registered | None = None
    """Of an earlier reign while its run is not the current one's."""
    pending: Pending | None = None
    updated_at: datetime

    @property
    def registered_as(self) -> Registered | None:
        """The current champion's version in the Model Registry; None without one, or until the alias is moved."""
        run_id = self.current.run_id if self.current else None
        return self.registered if self.registered and self.registered.run_id == run_id else None


def with_reign(champion: Champion, reign: Reign) -> Champion:
    return replace(champion, current=reign, history=(*champion.history, reign)[-KEPT_REIGNS:])


def champion_changed(
    champion: Champion, reign: Reign, champion_uri: str, pending: Pending | None = None
) -> Notice:
    """The notice that the reign began by a promotion or a rollback, or that it waits for approval."""
    before = next((one for one in champion.history if one.number == reign.number - 1), None)
    changed = {
        "model_name": champion.model_name,
        "run_id": reign.run_id,
        "model_uri": reign.model_uri,
        "champion_uri": champion_uri,
        "number": reign.number,
        "metric": reign.contest.metric,
        "value": reign.value,
        "replaces": before.run_id if before else None,
        "team": champion.team,
        "reason": pending.reason if pending else None,
        "approve_by": pending.expires_at if pending else None,
    }
    began = CHAMPION_PROMOTED if reign.cause is Cause.PROMOTION else CHAMPION_ROLLED_BACK
    of = f"approval/{reign.run_id}" if pending else reign.number
    notice_id = f"champions/{in_team(champion.team, champion.model_name)}/{of}"
    notice_type = APPROVAL_NEEDED if pending else began
    return notice_of(notice_id, notice_type, champion.model_name, reign.since, changed)
