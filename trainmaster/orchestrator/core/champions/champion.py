"""7. Champions: the best model under one name, by what its requests declare, and how it came to be.

A run whose request has a `champion` is a challenger. It is promoted only if it is better than the champion, by
at least the declared margin, on the same metric, goal, data set and evaluation split; otherwise the champion
stays, and the reason is kept. The document is schemas/champion.v1.schema.json.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from trainmaster.orchestrator.core.documents.faults import listed
from trainmaster.orchestrator.core.requests.spec import JobSpec
from trainmaster.orchestrator.core.requests.tuning import Goal
from trainmaster.orchestrator.core.runs.record import RunRecord, RunState

KEPT_REIGNS = 200
KEPT_VERDICTS = 50
_DIGEST = "@sha256:"


@dataclass(frozen=True, kw_only=True)
class Contest:
    """What makes two values comparable. `evaluation_split` None: the metric is the training's own."""

    metric: str
    goal: Goal
    dataset: str | None = None
    evaluation_split: str | None = None


@dataclass(frozen=True, kw_only=True)
class Lineage:
    """Where a model came from, from the event to the hash of its export; what is not known is left out.

    `request_uri` and `request_generation` are the dropped file's, the rule's or its template's.
    `image` is the chief's; of Python packages it is what they were installed in, and the request names them.
    `image_digest` is known where the request names the image by it: the service does not tell which one it pulled.
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


class Cause(StrEnum):
    PROMOTION = "promotion"
    ROLLBACK = "rollback"


@dataclass(frozen=True, kw_only=True)
class Reign:
    """One model's time as champion. `number` counts from 1; `order_id` names the rollback that began it."""

    number: int
    cause: Cause
    run_id: str
    model_uri: str
    value: float
    contest: Contest
    since: datetime
    lineage: Lineage
    order_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What became of one challenger, and why."""

    run_id: str
    promoted: bool
    reason: str
    at: datetime
    value: float | None = None


@dataclass(frozen=True, kw_only=True)
class Champion:
    """The document of one model name. `current` is None while no challenger could be compared at all.

    `history` holds every reign up to the present one, oldest first, at most KEPT_REIGNS.
    """

    schema: str = "champion.v1"
    model_name: str
    current: Reign | None = None
    history: tuple[Reign, ...] = ()
    considered: tuple[Verdict, ...] = ()
    updated_at: datetime


@dataclass(frozen=True, kw_only=True)
class Challenger:
    """A run that ended with a model, and what its request says of champions."""

    record: RunRecord
    spec: JobSpec


def challenger_of(record: RunRecord, spec: JobSpec) -> Challenger | None:
    """The challenger that the ended run is; None for any other run."""
    if spec.champion is None or record.state is not RunState.SUCCEEDED:
        return None
    return Challenger(record=record, spec=spec)


def after_challenge(champion: Champion | None, challenger: Challenger, now: datetime) -> Champion:
    """The document with the verdict on the challenger; as it is where it was considered before."""
    record, name = challenger.record, challenger.spec.model_name
    before = champion or Champion(model_name=name, updated_at=now)
    if verdict_on(before, record.run_id) is not None:
        return before
    reign = _reign(before, challenger, now)
    if isinstance(reign, str):
        return _considered(before, Verdict(run_id=record.run_id, promoted=False, reason=reign, at=now))
    reason = _why_not(before.current, reign, challenger)
    verdict = Verdict(
        run_id=record.run_id,
        promoted=not reason,
        reason=reason or _why(before.current, reign),
        at=now,
        value=reign.value,
    )
    after = _considered(before, verdict)
    return after if reason else _crowned(after, reign)


def verdict_on(champion: Champion, run_id: str) -> Verdict | None:
    """The verdict on the run. A reign proves a promotion even when the verdict is kept no longer."""
    for verdict in champion.considered:
        if verdict.run_id == run_id:
            return verdict
    for reign in champion.history:
        if reign.run_id == run_id and reign.cause is Cause.PROMOTION:
            return Verdict(run_id=run_id, promoted=True, reason="", at=reign.since, value=reign.value)
    return None


def reign_of(champion: Champion, run_id: str) -> Reign | None:
    """The reign that the run's promotion began."""
    found = (each for each in champion.history if each.run_id == run_id and each.cause is Cause.PROMOTION)
    return next(found, None)


def after_rollback(champion: Champion, to_run: str | None, *, order_id: str, now: datetime) -> Champion | str:
    """The document with an earlier champion again, or why there can be none. The same order changes it once."""
    if any(reign.order_id == order_id for reign in champion.history):
        return champion
    current = champion.current
    if current is None:
        return "there is no champion"
    if to_run is None:
        earlier = _before(champion, current)
    elif to_run == current.run_id:
        return f"{to_run} is the champion already"
    else:
        earlier = [reign for reign in champion.history if reign.run_id == to_run]
    if not earlier:
        return f"{to_run} was never champion" if to_run else "there was no other champion before"
    again = replace(
        earlier[-1],
        number=current.number + 1,
        cause=Cause.ROLLBACK,
        since=now,
        order_id=order_id,
    )
    return _crowned(replace(champion, updated_at=now), again)


def reign_by_order(champion: Champion, order_id: str) -> Reign:
    """The reign that a rollback began.

    Raises:
        StopIteration: none did; `after_rollback` was not asked.
    """
    return next(reign for reign in champion.history if reign.order_id == order_id)


def earlier_runs(champion: Champion) -> str:
    """Whose champions may come back, the latest first."""
    current = champion.current.run_id if champion.current else ""
    runs = dict.fromkeys(reign.run_id for reign in reversed(champion.history) if reign.run_id != current)
    return listed(runs) or "none"


def _crowned(champion: Champion, reign: Reign) -> Champion:
    return replace(champion, current=reign, history=(*champion.history, reign)[-KEPT_REIGNS:])


def _considered(champion: Champion, verdict: Verdict) -> Champion:
    considered = (*champion.considered, verdict)[-KEPT_VERDICTS:]
    return replace(champion, considered=considered, updated_at=verdict.at)


def _before(champion: Champion, current: Reign) -> list[Reign]:
    """The reigns before the present champion's first, oldest first.

    Not simply the reigns before the present one: after a rollback the last of those is the one that was left,
    and a second order would lead forward to it again.
    """
    runs = [reign.run_id for reign in champion.history]
    return list(champion.history[: runs.index(current.run_id)])


def _reign(before: Champion, challenger: Challenger, now: datetime) -> Reign | str:
    """The reign that would begin, or why the run cannot be compared with anything."""
    record, terms = challenger.record, challenger.spec.champion
    model = record.model
    if model is None or terms is None:
        return "the run left no model"
    value = model.metrics.get(terms.metric)
    if value is None or not math.isfinite(value):
        known = ", ".join(sorted(model.metrics)) or "none"
        return f"the model's manifest has no metric {terms.metric!r}; it has: {known}"
    dataset = model.dataset
    contest = Contest(
        metric=terms.metric,
        goal=terms.goal,
        dataset=dataset.name if dataset else None,
        evaluation_split=dataset.evaluation_split if dataset else None,
    )
    return Reign(
        number=before.current.number + 1 if before.current else 1,
        cause=Cause.PROMOTION,
        run_id=record.run_id,
        model_uri=model.uri,
        value=value,
        contest=contest,
        since=now,
        lineage=lineage_of(record, challenger.spec),
    )


def _why_not(current: Reign | None, reign: Reign, challenger: Challenger) -> str:
    """Why the champion stays; empty where the challenger is promoted."""
    if current is None:
        return ""
    ours, theirs = reign.contest, current.contest
    if ours != theirs:
        return f"it was measured by {_said(ours)}, the champion by {_said(theirs)}: they cannot be compared"
    margin = challenger.spec.champion.margin if challenger.spec.champion else 0.0
    gain = reign.value - current.value if ours.goal is Goal.MAXIMIZE else current.value - reign.value
    # 0.03 - 0.02 is a little less than 0.01 in floating point, and is meant to be the same.
    if gain > 0 and (gain >= margin or math.isclose(gain, margin, rel_tol=1e-9)):
        return ""
    wanted = f"better by {margin:g}" if margin else "better"
    return f"{ours.metric} {reign.value:g} is not {wanted} than the champion's {current.value:g}"


def _why(current: Reign | None, reign: Reign) -> str:
    if current is None:
        return f"the first, with {reign.contest.metric} {reign.value:g}"
    return f"{reign.contest.metric} {reign.value:g} beats {current.value:g}"


def _said(contest: Contest) -> str:
    where = f" on {contest.dataset or 'an unnamed data set'}, split {contest.evaluation_split or 'none'}"
    return f"{contest.metric} ({contest.goal}){where}"


def lineage_of(record: RunRecord, spec: JobSpec) -> Lineage:
    """What the record and its request say of where the model came from."""
    source, model, image = record.source, record.model, spec.cluster.chief.program.image
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
        trial_id=record.best_trial.id if record.best_trial else None,
        manifest_uri=model.manifest_uri if model else None,
        manifest_sha256=model.manifest_sha256 if model else None,
    )


def promotion_data(champion: Champion, reign: Reign, champion_uri: str) -> Mapping[str, Any]:
    """What the notice of a promotion or a rollback says: schemas/notice.v1.schema.json."""
    before = next((each for each in champion.history if each.number == reign.number - 1), None)
    data = {
        "model_name": champion.model_name,
        "run_id": reign.run_id,
        "model_uri": reign.model_uri,
        "champion_uri": champion_uri,
        "number": reign.number,
        "metric": reign.contest.metric,
        "value": reign.value,
        "replaces": before.run_id if before else None,
    }
    return {key: value for key, value in data.items() if value is not None}
