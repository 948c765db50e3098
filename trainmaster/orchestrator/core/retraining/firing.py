"""One firing: its number, its run id, the values for the request's places, and the state that says so."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime

from trainmaster.orchestrator.core.documents.codec import encoded_time
from trainmaster.orchestrator.core.names import run_id_at
from trainmaster.orchestrator.core.retraining.rules.condition import ConditionKind
from trainmaster.orchestrator.core.retraining.rules.rule import Rule
from trainmaster.orchestrator.core.retraining.state import DAY, Counted, Firing, RuleState, with_seen

STAYS_DUE = frozenset({ConditionKind.NEW_DATA, ConditionKind.AGE})
"""What need not be remembered when it cannot fire now: it is still due later."""


@dataclass(frozen=True, kw_only=True)
class ChampionFacts:
    """The champion of the rule's model, as far as rules are about it. `since`: when it was promoted."""

    run_id: str
    model_uri: str
    value: float
    since: datetime


@dataclass(frozen=True, kw_only=True)
class Due:
    """What asks for a firing. `values` are the event's own."""

    condition: ConditionKind
    event_id: str
    values: Mapping[str, str] = field(default_factory=dict)
    image: str | None = None


def firing_of(
    rule: Rule,
    state: RuleState,
    due: Due,
    *,
    now: datetime,
    champion: ChampionFacts | None,
    replaces: str | None,
) -> Firing:
    """The firing that is due now; asked for again with the same arguments it is the same.

    `replaces` is the run to cancel first.
    """
    number = state.number + 1
    run_id = run_id_at(rule.rule_id, now, f"rule:{rule.identity}#{number}")
    values = {
        "rule.id": rule.rule_id,
        "firing.id": run_id,
        "firing.time": encoded_time(now),
        "firing.condition": due.condition.value,
        **_data_values(rule, state.arrived or Counted()),
        **_champion_values(champion),
        **due.values,
    }
    return Firing(
        number=number,
        run_id=run_id,
        condition=due.condition,
        at=now,
        generation=rule.generation,
        event_id=due.event_id,
        values=values,
        replaces=replaces,
    )


def _data_values(rule: Rule, arrived: Counted) -> dict[str, str]:
    if not rule.new_data:
        return {}
    values = {"data.count": str(arrived.count), "data.bytes": str(arrived.size_bytes)}
    if arrived.newest_at is not None and arrived.newest_uri is not None:
        values["data.watermark"] = encoded_time(arrived.newest_at)
        values["data.newest_uri"] = arrived.newest_uri
        values["data.newest_dir_uri"] = arrived.newest_uri.rpartition("/")[0] + "/"
    return values


def _champion_values(champion: ChampionFacts | None) -> dict[str, str]:
    if champion is None:
        return {}
    return {
        "champion.model_uri": champion.model_uri,
        "champion.run_id": champion.run_id,
        "champion.value": repr(champion.value),
    }


def with_firing(state: RuleState, firing: Firing, due: Due) -> RuleState:
    """The state that says the firing is decided; what it was fired by, and what else was due, is used up."""
    now = firing.at
    fired = replace(
        state,
        number=firing.number,
        firing=firing,
        queued=None,
        fired_at=(*(at for at in state.fired_at if at > now - DAY), now),
        fired_last_at=now,
        data=(),
        arrived=None,
        scheduled_until=max(now, state.scheduled_until),
        image=due.image or state.image,
        held=None,
    )
    return fired if due.condition in STAYS_DUE else with_seen(fired, due.event_id)
