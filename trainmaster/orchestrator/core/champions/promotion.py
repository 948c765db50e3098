"""Changes of the champion of a model name: a better run replaces it, or an order restores an earlier one.

A run whose request has a `champion` is a challenger when it succeeds. It is promoted only if it is better than the
champion, by at least the declared margin, on the same metric, goal, data set and evaluation split. Otherwise the
champion stays, and the document keeps the reason. Where the request names a job that evaluates, only that job's numbers
count, for both models. Where it asks for approval, a challenger that wins waits for an order.
"""

import math
from dataclasses import replace
from datetime import datetime, timedelta

from trainmaster.orchestrator.core.champions.champion import (
    KEPT_VERDICTS,
    Cause,
    Champion,
    Contest,
    Pending,
    Reign,
    Verdict,
    lineage_of,
    with_reign,
)
from trainmaster.orchestrator.core.champions.copy import ModelCopy, NotCopied, served_from
from trainmaster.orchestrator.core.documents.values import text_at
from trainmaster.orchestrator.core.orders.order import ApproveOrder
from trainmaster.orchestrator.core.requests.checks.metrics import is_share
from trainmaster.orchestrator.core.requests.spec import ChampionTerms, Goal, JobSpec
from trainmaster.orchestrator.core.runs.end import CHALLENGER, CHAMPION, CHAMPION_RUN, ChampionVerdict, Model
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.sender import Sender
from trainmaster.orchestrator.core.runs.states import RunState

NOISE = 1e-4
"""A gain of a smaller part of the champion's value is called noise, where the request sets no margin."""
PER_CENT_FROM, UNITS_APART = 1.5, 50
"""A share above the first is in per cent. In per cent a value is 100 times as large, and no step of training is that."""


def is_challenger(record: RunRecord, spec: JobSpec) -> bool:
    """Whether the ended run challenges the champion: it succeeded, and its request has a `champion`."""
    return spec.champion is not None and record.state is RunState.SUCCEEDED


def after_challenge(
    champion: Champion | None,
    record: RunRecord,
    spec: JobSpec,
    now: datetime,
    copy: ModelCopy | NotCopied | None,
    *,
    approve_within: timedelta,
) -> Champion | None:
    """The document with the verdict on the challenger, unchanged if it has one; None: it wins, and needs a copy first.

    `copy` matters only if the challenger wins: without a copy of its model there is no reign.
    """
    run_id, team = record.run_id, record.source.team
    before = champion or Champion(model_name=spec.model_name, team=team, updated_at=now)
    # A reign proves a promotion even when its verdict is no longer kept.
    if reign_of(before, run_id) or any(verdict.run_id == run_id for verdict in before.considered):
        return before
    if before.pending is not None and before.pending.reign.run_id == run_id:
        is_expired = before.pending.expires_at <= now
        return _without_pending(before, "it was not approved in time", now) if is_expired else before
    reign = _reign(before, record, spec, now)
    if isinstance(reign, str):
        return _with_verdict(before, Verdict(run_id=run_id, promoted=False, reason=reign, at=now))
    terms, current = spec.champion, _rescored_reign(before.current, record, reign)
    is_better, reason = (
        (False, current)
        if isinstance(current, str)
        else compare_reigns(current, reign, terms.margin if terms else 0.0)
    )
    if is_better and copy is None:
        return None
    if is_better and isinstance(copy, NotCopied):
        reason = f"{reason}, but {copy.reason}"
    served = served_from(copy, reign) if is_better and isinstance(copy, ModelCopy) else None
    if served is not None and terms is not None and terms.approve:
        without = _without_pending(before, f"{run_id} won before it was approved", now)
        against = before.current.run_id if before.current else None
        pending = Pending(reign=served, reason=reason, compared_with=against, expires_at=now + approve_within)
        return replace(without, pending=pending, updated_at=now)
    verdict = Verdict(run_id=run_id, promoted=served is not None, reason=reason, at=now, value=reign.value)
    after = _with_verdict(before, verdict)
    return after if served is None else with_reign(after, served)


def reign_of(champion: Champion, run_id: str) -> Reign | None:
    """The reign that the run's promotion began."""
    found = (reign for reign in champion.history if reign.run_id == run_id and reign.cause is Cause.PROMOTION)
    return next(found, None)


def verdict_on(champion: Champion, run_id: str) -> ChampionVerdict | None:
    """The verdict on the run, for its record; None if the document no longer has one.

    It follows from the document alone, so a repeated challenge finds the same verdict, even after later changes.
    """
    pending = champion.pending
    if pending is not None and pending.reign.run_id == run_id:
        reason = f"{pending.reason}; waits for approval until {pending.expires_at:%Y-%m-%d %H:%M} UTC"
        against, approve_by = pending.compared_with, pending.expires_at
        return ChampionVerdict(promoted=False, reason=reason, compared_with=against, approve_by=approve_by)
    verdict = next((judged for judged in champion.considered if judged.run_id == run_id), None)
    reign = reign_of(champion, run_id)
    if reign is not None:
        earlier = [other.run_id for other in champion.history if other.number == reign.number - 1]
        reason = verdict.reason if verdict else f"{reign.contest.metric} {reign.value:g}"
    elif verdict is not None:
        earlier = [other.run_id for other in reversed(champion.history) if other.since <= verdict.at]
        reason = verdict.reason
    else:
        return None
    compared_with = earlier[0] if earlier else None
    return ChampionVerdict(promoted=reign is not None, reason=reason, compared_with=compared_with)


def _with_verdict(champion: Champion, verdict: Verdict) -> Champion:
    considered = (*champion.considered, verdict)[-KEPT_VERDICTS:]
    return replace(champion, considered=considered, updated_at=verdict.at)


def _without_pending(champion: Champion, why: str, now: datetime, order_id: str | None = None) -> Champion:
    """The document without its pending challenger, which was not promoted."""
    if champion.pending is None:
        return champion
    reign, reason = champion.pending.reign, f"{champion.pending.reason}, but {why}"
    verdict = Verdict(
        run_id=reign.run_id, promoted=False, reason=reason, at=now, value=reign.value, order_id=order_id
    )
    return _with_verdict(replace(champion, pending=None), verdict)


def _reign(before: Champion, record: RunRecord, spec: JobSpec, now: datetime) -> Reign | str:
    """The reign that would begin, or why the run cannot be compared with anything."""
    model, terms = record.model, spec.champion
    if model is None or terms is None:
        return "the run has no model"
    value = _own_value(model, terms) if terms.evaluate is None else _score(record, CHALLENGER, terms.metric)
    if isinstance(value, str):
        return value
    return Reign(
        number=before.current.number + 1 if before.current else 1,
        cause=Cause.PROMOTION,
        run_id=record.run_id,
        model_uri=model.uri,
        trained_uri=model.uri,
        value=value,
        contest=_contest(terms, model),
        since=now,
        lineage=lineage_of(record, spec),
    )


def _own_value(model: Model, terms: ChampionTerms) -> float | str:
    """The metric that the run itself left, or why there is no such number."""
    value = model.metrics.get(terms.metric)
    if value is None and (diverged := (model.not_finite or {}).get(terms.metric)):
        return f"the run's metric {terms.metric!r} is {diverged}: the training diverged"
    if value is not None and math.isfinite(value):
        return value
    known = ", ".join(sorted(model.metrics))
    if not known:
        return f"the run has no metric {terms.metric!r}, nor any other: write it to metrics.json beside the model"
    return f"the run has no metric {terms.metric!r}, only {known}: name one of these as champion.metric"


def _score(record: RunRecord, model: str, metric: str) -> float | str:
    """What the evaluation measured of the challenger or the champion, or why there is no such number."""
    evaluation = record.evaluation
    if evaluation is None or evaluation.scores is None:
        return f"the evaluation failed: {(evaluation and evaluation.failure) or 'it was given up'}"
    value = evaluation.scores.get(model, {}).get(metric)
    return f"the evaluation gave no finite {metric!r} of the {model}" if value is None else value


def _rescored_reign(current: Reign | None, record: RunRecord, challenger: Reign) -> Reign | str | None:
    """The champion with the value by which the challenger is measured; the reason if there is no such value.

    A champion that began its reign after the evaluation did keeps the value that is on record.
    """
    evaluation = record.evaluation
    if current is None or evaluation is None or evaluation.scores is None or not challenger.contest.evaluator:
        return current
    if evaluation.inputs.get(CHAMPION_RUN) != current.run_id:
        return current
    value = _score(record, CHAMPION, challenger.contest.metric)
    return value if isinstance(value, str) else replace(current, value=value, contest=challenger.contest)


def _contest(terms: ChampionTerms, model: Model) -> Contest:
    """Identified by the evaluation that the request names, else by the data set as far as it is known."""
    contest = Contest(metric=terms.metric, goal=terms.goal, evaluation=terms.evaluation)
    if terms.evaluate is not None:
        evaluate = terms.evaluate
        program = text_at(evaluate, "script", "archive") or text_at(evaluate, "image") or ""
        return replace(
            contest, evaluation=text_at(evaluate, "data"), evaluator=program.rpartition("/")[2] or program
        )
    if terms.evaluation or model.dataset is None:
        return contest
    return replace(contest, dataset=model.dataset.name, evaluation_split=model.dataset.evaluation_split)


def compare_reigns(current: Reign | None, challenger: Reign, margin: float) -> tuple[bool, str]:
    """Whether the challenger replaces the current champion, and the reason.

    It must be better by at least `margin`, which is not negative, in the same contest.
    """
    ours = challenger.contest
    if current is None:
        return True, f"the first, with {ours.metric} {challenger.value:g}"
    theirs = current.contest
    if ours != theirs:
        why = f"it was measured by {_text(ours)}, the champion by {_text(theirs)}: they cannot be compared"
        return False, why
    gain = challenger.value - current.value
    gain = gain if ours.goal is Goal.MAXIMIZE else -gain
    # 0.03 - 0.02 is slightly less than 0.01 in floating point, but must count as equal.
    if gain > 0 and (gain >= margin or math.isclose(gain, margin, rel_tol=1e-9)):
        if _in_other_unit(ours.metric, current.value, challenger.value):
            return False, (
                f"{ours.metric} {challenger.value:g} seems to be in another unit than the champion's {current.value:g}, as "
                "91 and 0.91 are: write the metric in the champion's unit, or delete the champion's document to start again"
            )
        is_noise = not margin and gain < NOISE * abs(current.value)
        noise = f" by {gain:.1g}, which is likely noise: set champion.margin" if is_noise else ""
        return True, f"{ours.metric} {challenger.value:g} beats {current.value:g}{noise}"
    required = f"better by {margin:g}" if margin else "better"
    return (
        False,
        f"{ours.metric} {challenger.value:g} is not {required} than the champion's {current.value:g}",
    )


def _in_other_unit(metric: str, champion: float, challenger: float) -> bool:
    """Whether one of the two, which are shares by the metric's name, is in per cent, and the other is not."""
    low, high = sorted((champion, challenger))
    return is_share(metric) and 0 < low <= 1 < PER_CENT_FROM <= high and high >= UNITS_APART * low


def _text(contest: Contest) -> str:
    where = contest.evaluation or contest.dataset or "an unnamed data set"
    split = f", split {contest.evaluation_split or 'none'}" if contest.dataset else ""
    by = f", by the evaluation {contest.evaluator}" if contest.evaluator else ""
    return f"{contest.metric} ({contest.goal}) on {where}{split}{by}"


def after_decision(
    champion: Champion, order: ApproveOrder, by: Sender | None, now: datetime
) -> Champion | str:
    """The document with its pending challenger promoted or rejected, or why that is impossible.

    Repeating an order changes nothing. A champion that changed meanwhile is compared again.
    """
    known = {
        *(reign.order_id for reign in champion.history),
        *(verdict.order_id for verdict in champion.considered),
    }
    if order.order_id in known:
        return champion
    pending, current = champion.pending, champion.current
    if pending is None or pending.expires_at <= now:
        return "no challenger waits for approval"
    if order.run_id not in (None, pending.reign.run_id):
        return f"{order.run_id} does not wait for approval, but {pending.reign.run_id} does"
    who = by.name if by is not None else "an order"
    if order.is_rejected:
        return _without_pending(champion, f"{who} rejected it", now, order.order_id)
    if current is not None and current.run_id != pending.compared_with:
        is_better, reason = compare_reigns(current, pending.reign, 0.0)
        if not is_better:
            return f"the champion changed meanwhile, and {reason}"
    number = current.number + 1 if current else 1
    reign = replace(pending.reign, number=number, since=now, order_id=order.order_id, approved_by=by)
    reason = f"{pending.reason}; {who} approved it"
    verdict = Verdict(
        run_id=reign.run_id, promoted=True, reason=reason, at=now, value=reign.value, order_id=order.order_id
    )
    return with_reign(_with_verdict(replace(champion, pending=None), verdict), reign)


def after_rollback(champion: Champion, to_run: str | None, *, order_id: str, now: datetime) -> Champion | str:
    """The document with an earlier champion restored, or why that is impossible. Repeating an order changes nothing."""
    if any(reign.order_id == order_id for reign in champion.history):
        return champion
    current = champion.current
    if current is None:
        return "there is no champion"
    if to_run is None:
        earlier = _before(champion, current)
    elif to_run == current.run_id:
        return f"{to_run} is already the champion"
    else:
        earlier = [reign for reign in champion.history if reign.run_id == to_run]
    if not earlier:
        return f"{to_run} was never champion" if to_run else "there was no champion before it"
    number = current.number + 1
    again = replace(earlier[-1], number=number, cause=Cause.ROLLBACK, since=now, order_id=order_id)
    return with_reign(replace(champion, updated_at=now), again)


def restorable_runs(champion: Champion) -> tuple[str, ...]:
    """The runs whose models can be restored, latest first; after a rollback, also that of the later champion."""
    current = champion.current.run_id if champion.current else ""
    latest_first = (reign.run_id for reign in reversed(champion.history))
    return tuple(dict.fromkeys(run_id for run_id in latest_first if run_id != current))


def _before(champion: Champion, current: Reign) -> list[Reign]:
    """The reigns before the current champion's first one, oldest first.

    Not simply the reigns before the current one: after a rollback, the last of those is the champion that was
    rolled back, and a second order would restore it.
    """
    runs = [reign.run_id for reign in champion.history]
    return list(champion.history[: runs.index(current.run_id)])
