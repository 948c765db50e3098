"""Changes champions: when a better run ends, or by an order to approve it or to roll back. Only by compare-and-set."""

from collections.abc import Callable
from datetime import timedelta

from trainmaster.orchestrator.core.champions import promotion
from trainmaster.orchestrator.core.champions.champion import Champion, Pending, Reign, champion_changed
from trainmaster.orchestrator.core.champions.copy import ModelCopy, NotCopied
from trainmaster.orchestrator.core.documents.faults import Refused, refusal_of
from trainmaster.orchestrator.core.orders.order import ApproveOrder, RollbackOrder
from trainmaster.orchestrator.core.policy.policy import EvaluationPolicy
from trainmaster.orchestrator.core.requests.spec import JobSpec, spec_from
from trainmaster.orchestrator.core.retraining.rule import ChampionFacts
from trainmaster.orchestrator.core.runs.end import ChampionVerdict
from trainmaster.orchestrator.core.runs.sender import Sender
from trainmaster.orchestrator.flows.completion.copying import copy_model
from trainmaster.orchestrator.flows.lifecycle.finish import End
from trainmaster.orchestrator.flows.services import Services


def compare_with_champion(end: End) -> str | None:
    """What the comparison still waits for; None: it is decided, or the request asks for none."""
    request = end.record.request
    spec = spec_from(request.document) if request is not None else None
    if spec is None or spec.champion is None:
        return None
    if end.record.awaits_evaluation:
        return "the evaluation decides"
    verdict = challenge(end, spec)
    if isinstance(verdict, str):
        return verdict
    end.verdict = verdict
    return "it waits for approval" if verdict is not None and verdict.approve_by is not None else None


def challenge(end: End, spec: JobSpec) -> ChampionVerdict | str | None:
    """Compare the ended run with the champion, once, and publish a promotion at least once; None without terms.

    A run that wins is promoted once its model is copied, if it still wins then; a text says what the copy waits for.
    Safe to repeat: the verdict stays the same.

    Raises:
        GenerationMoved: the document kept changing.
        DocumentDamaged: the document, or the list of the model's files, is not usable.
    """
    services, record = end.services, end.record
    if not promotion.is_challenger(record, spec):
        return None

    copy: ModelCopy | NotCopied | None = None
    is_approved = spec.champion is not None and spec.champion.approve
    terms = services.policy().evaluation if is_approved else EvaluationPolicy()
    within = timedelta(days=terms.approve_within_days)

    def judge(champion: Champion | None) -> Champion | None:
        return promotion.after_challenge(
            champion, record, spec, services.clock.now(), copy, approve_within=within
        )

    while (after := services.champions.update(spec.model_name, judge, record.source.team)) is None:
        copied = copy_model(end, spec.model_name)
        if isinstance(copied, str):
            return copied
        copy = copied
    reign = promotion.reign_of(after, record.run_id)
    if reign is not None:
        _publish(services, after, reign)
    verdict = promotion.verdict_on(after, record.run_id)
    waits = verdict is not None and verdict.approve_by is not None
    is_announced = record.completion is not None and record.completion.champion is not None
    if waits and not is_announced and after.pending is not None:
        _publish(services, after, after.pending.reign, after.pending)
    return verdict


def decide(
    services: Services, order: ApproveOrder, by: Sender | None, team: str | None = None
) -> Champion | Refused:
    """The document in which the team's order promoted or rejected a challenger, or why it was refused. Safe to repeat.

    The challenger's record is brought up to date by its step, at the next tick.

    Raises:
        GenerationMoved: the document kept changing.
    """
    path, value = ("$.approve.model_name", order.model_name)
    path, value = (path, value) if order.run_id is None else ("$.approve.run", order.run_id)

    def change(champion: Champion | None) -> Champion | Refused:
        if champion is None:
            problem = "no champion and no challenger has this model name"
            return refusal_of(problem, path="$.approve.model_name", value=order.model_name)
        after = promotion.after_decision(champion, order, by, services.clock.now())
        if isinstance(after, str):
            return refusal_of(after, path=path, value=value)
        return after if order.is_rejected else _if_served(services, champion, after, path)

    return _carry_out(services, order, change, team)


def roll_back(services: Services, order: RollbackOrder, team: str | None = None) -> Champion | Refused:
    """The document after the team's order, or why it was refused. Safe to repeat: an order changes the champion once.

    Raises:
        GenerationMoved: the document kept changing.
    """
    path = "$.rollback.model_name" if order.to_run is None else "$.rollback.to_run"

    def change(champion: Champion | None) -> Champion | Refused:
        if champion is None:
            problem = "no champion has this model name"
            return refusal_of(problem, path="$.rollback.model_name", value=order.model_name)
        now, order_id = services.clock.now(), order.order_id
        after = promotion.after_rollback(champion, order.to_run, order_id=order_id, now=now)
        if not isinstance(after, str):
            return _if_served(services, champion, after, path)
        if order.to_run is None:
            return refusal_of(after, path=path, value=order.model_name)
        return refusal_of(after, path=path, value=order.to_run, among=promotion.restorable_runs(champion))

    return _carry_out(services, order, change, team)


def _carry_out(
    services: Services,
    order: RollbackOrder | ApproveOrder,
    change: Callable[[Champion | None], Champion | Refused],
    team: str | None,
) -> Champion | Refused:
    """The changed document; the reign that the order began is published, at each delivery."""
    after = services.champions.update(order.model_name, change, team)
    if isinstance(after, Champion):
        for reign in after.history:
            if reign.order_id == order.order_id:
                _publish(services, after, reign)
    return after


def _if_served(services: Services, champion: Champion, after: Champion, path: str) -> Champion | Refused:
    """`after`, unless an operator deleted the copy of the model that it promotes or restores."""
    restored = after.current
    if after is champion or restored is None or services.champion_copies.holds(restored.model_uri):
        return after
    problem = f"the copy of its model no longer exists: {restored.model_uri}"
    return refusal_of(problem, path=path, value=restored.run_id, among=promotion.restorable_runs(champion))


def champion_facts(services: Services, model_name: str, team: str | None) -> ChampionFacts | None:
    """What a team's rules may know about its champion, or None without a champion."""
    champion = services.champions.find(model_name, team)
    current = champion.current if champion else None
    if current is None:
        return None
    run_id, model_uri = current.run_id, current.model_uri
    return ChampionFacts(run_id=run_id, model_uri=model_uri, value=current.value, since=current.since)


def _publish(services: Services, champion: Champion, reign: Reign, pending: Pending | None = None) -> None:
    """Publish that the reign began, or that it waits for approval."""
    uri = services.champions.uri(champion.model_name, champion.team)
    services.notices.publish(champion_changed(champion, reign, uri, pending))
