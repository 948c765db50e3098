"""Changes champions: when a better run ends, or by an order to roll back. Only by compare-and-set."""

from trainmaster.orchestrator.core.champions.champion import Cause, Champion, Reign
from trainmaster.orchestrator.core.champions.promotion import (
    after_challenge,
    after_rollback,
    challenger_of,
    earlier_runs,
    reign_by_order,
    reign_of,
    verdict_on,
)
from trainmaster.orchestrator.core.documents.faults import Fault
from trainmaster.orchestrator.core.notices.notice import (
    CHAMPION_PROMOTED,
    CHAMPION_ROLLED_BACK,
    ChampionPayload,
    champion_changed,
)
from trainmaster.orchestrator.core.requests.orders import RollbackOrder
from trainmaster.orchestrator.core.requests.request import Refused
from trainmaster.orchestrator.core.requests.spec import JobSpec
from trainmaster.orchestrator.core.retraining.rule import ChampionFacts
from trainmaster.orchestrator.core.runs.end import ChampionVerdict
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.flows.services import Services


def challenge(services: Services, record: RunRecord, spec: JobSpec) -> ChampionVerdict | None:
    """Compare the ended run with the champion, once, and publish a promotion at least once; None without terms.

    Safe to repeat: the verdict stays the same.

    Raises:
        GenerationMoved: the document kept changing.
    """
    challenger = challenger_of(record, spec)
    if challenger is None:
        return None
    after = services.champions.update(
        spec.model_name,
        lambda champion: after_challenge(champion, challenger, services.clock.now()),
        record.source.team,
    )
    reign = reign_of(after, record.run_id)
    if reign is not None:
        _publish(services, after, reign)
    return verdict_on(after, record.run_id)


def roll_back(services: Services, order: RollbackOrder, team: str | None = None) -> Reign | Refused:
    """The reign that the team's order began, or why it was refused. Safe to repeat: an order changes the champion once.

    Raises:
        GenerationMoved: the document kept changing.
    """

    def change(champion: Champion | None) -> Champion | Refused:
        if champion is None:
            return _refused("$.rollback.model_name", "no champion has this model name", order.model_name)
        after = after_rollback(champion, order.to_run, order_id=order.order_id, now=services.clock.now())
        if not isinstance(after, str):
            return after
        if order.to_run is None:
            return _refused("$.rollback.model_name", after, order.model_name)
        return _refused("$.rollback.to_run", after, order.to_run, earlier_runs(champion))

    after = services.champions.update(order.model_name, change, team)
    if isinstance(after, Refused):
        return after
    reign = reign_by_order(after, order.order_id)
    _publish(services, after, reign)
    return reign


def champion_facts(services: Services, model_name: str, team: str | None) -> ChampionFacts | None:
    """What a team's rules may know about its champion; None if there is none."""
    champion = services.champions.find(model_name, team)
    current = champion.current if champion else None
    if current is None:
        return None
    return ChampionFacts(
        run_id=current.run_id, model_uri=current.model_uri, value=current.value, since=current.since
    )


def _publish(services: Services, champion: Champion, reign: Reign) -> None:
    before = next((each for each in champion.history if each.number == reign.number - 1), None)
    changed = ChampionPayload(
        model_name=champion.model_name,
        run_id=reign.run_id,
        model_uri=reign.model_uri,
        champion_uri=services.champions.uri(champion.model_name, champion.team),
        number=reign.number,
        metric=reign.contest.metric,
        value=reign.value,
        replaces=before.run_id if before else None,
        team=champion.team,
    )
    notice_type = CHAMPION_PROMOTED if reign.cause is Cause.PROMOTION else CHAMPION_ROLLED_BACK
    services.notices.publish(champion_changed(notice_type, changed, reign.since))


def _refused(path: str, problem: str, found: str, allowed: str = "") -> Refused:
    return Refused(faults=(Fault(path=path, problem=problem, value=found, allowed=allowed),))
