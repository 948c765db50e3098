"""A run whose request has a `champion` is a challenger when it succeeds.

It is promoted only if it is better than the champion, by at least the declared margin, on the same metric, goal,
data set and evaluation split; otherwise the champion stays, and the reason is kept.
"""

import math
from dataclasses import dataclass, replace
from datetime import datetime

from trainmaster.orchestrator.core.champions.champion import (
    KEPT_VERDICTS,
    Cause,
    Champion,
    Contest,
    Reign,
    Verdict,
    crowned,
)
from trainmaster.orchestrator.core.champions.comparison import compared
from trainmaster.orchestrator.core.champions.lineage import lineage_of
from trainmaster.orchestrator.core.requests.spec import JobSpec
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.states import RunState


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
    record, terms = challenger.record, challenger.spec.champion
    before = champion or Champion(model_name=challenger.spec.model_name, updated_at=now)
    if _was_considered(before, record.run_id):
        return before
    reign = _reign(before, challenger, now)
    if isinstance(reign, str):
        return _considered(before, Verdict(run_id=record.run_id, promoted=False, reason=reign, at=now))
    promoted, reason = compared(before.current, reign, terms.margin if terms else 0.0)
    verdict = Verdict(run_id=record.run_id, promoted=promoted, reason=reason, at=now, value=reign.value)
    after = _considered(before, verdict)
    return crowned(after, reign) if promoted else after


def reign_of(champion: Champion, run_id: str) -> Reign | None:
    """The reign that the run's promotion began."""
    found = (each for each in champion.history if each.run_id == run_id and each.cause is Cause.PROMOTION)
    return next(found, None)


def _was_considered(champion: Champion, run_id: str) -> bool:
    """A reign proves a promotion even when its verdict is no longer kept."""
    return any(verdict.run_id == run_id for verdict in champion.considered) or bool(
        reign_of(champion, run_id)
    )


def _considered(champion: Champion, verdict: Verdict) -> Champion:
    considered = (*champion.considered, verdict)[-KEPT_VERDICTS:]
    return replace(champion, considered=considered, updated_at=verdict.at)


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
