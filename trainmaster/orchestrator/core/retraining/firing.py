"""One firing: its run id, the values for its request's placeholders, the request itself, and the state with it."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from trainmaster.orchestrator.core.documents.codec import encoded_time, json_line
from trainmaster.orchestrator.core.documents.faults import Refused, refusal_of
from trainmaster.orchestrator.core.names import run_id_at
from trainmaster.orchestrator.core.retraining import filling
from trainmaster.orchestrator.core.retraining.base import ConditionKind
from trainmaster.orchestrator.core.retraining.request_check import made_by, parse_template
from trainmaster.orchestrator.core.retraining.rule import ChampionFacts, Rule
from trainmaster.orchestrator.core.retraining.state import DAY, DueFiring, Firing, RuleState, with_seen
from trainmaster.orchestrator.core.retraining.waiting import DataBatch

STAYS_DUE = frozenset({ConditionKind.NEW_DATA, ConditionKind.AGE, ConditionKind.ALL})
"""Conditions that need no queue when they cannot fire now: they stay due."""


def firing_of(
    rule: Rule,
    state: RuleState,
    due: DueFiring,
    *,
    now: datetime,
    batch: DataBatch,
    champion: ChampionFacts | None,
    replaces: str | None,
) -> Firing:
    """The firing that is due now; the same arguments give the same firing.

    `batch` is what it takes, `replaces` the run to cancel first.
    """
    number = state.number + 1
    run_id = run_id_at(rule.rule_id, now, f"rule:{rule.rule_id}@{rule.generation}#{number}")
    values = {
        "rule.id": rule.rule_id,
        "firing.id": run_id,
        "firing.time": encoded_time(now),
        "firing.condition": due.condition.value,
        **_data_values(rule, state, batch),
        **due.values,
    }
    if champion is not None:
        about = {"model_uri": champion.model_uri, "run_id": champion.run_id, "value": repr(champion.value)}
        values = {**{f"champion.{name}": text for name, text in about.items()}, **values}
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


def _data_values(rule: Rule, state: RuleState, batch: DataBatch) -> dict[str, str]:
    if not rule.new_data:
        return {}
    newest = batch.newest
    values = {
        "data.count": str(batch.count),
        "data.bytes": str(batch.size_bytes),
        "data.since": state.watermark and encoded_time(state.watermark),
        "data.watermark": newest and encoded_time(newest.created_at),
        "data.newest_uri": newest and newest.uri,
        "data.newest_dir_uri": newest and newest.dir_uri,
        # As with a signal's values, cut but left too long.
        "data.dirs": ",".join(batch.dirs)[: filling.VALUE_MAX_CHARS + 1],
        "data.manifest_uri": batch.manifest_uri,
    }
    return {name: text for name, text in values.items() if text}


def with_firing(state: RuleState, firing: Firing, due: DueFiring, batch: DataBatch) -> RuleState:
    """The state after the decision to fire; everything that was due is used up, and of the data, the batch."""
    now, left = firing.at, {folder.dir_uri for folder in batch.left}
    fired = replace(
        state,
        number=firing.number,
        firing=firing,
        queued=None,
        fired_at=(*(moment for moment in state.fired_at if moment > now - DAY), now),
        fired_last_at=now,
        waiting=batch.left,
        newest=tuple(found for found in state.newest if found.dir_uri in left),
        watermark=batch.newest.created_at if batch.newest is not None else state.watermark,
        scheduled_until=max(now, state.scheduled_until),
        image=due.image or state.image,
        met={},
        held=None,
    )
    return fired if due.condition in STAYS_DUE else with_seen(fired, due.event_id)


def request_of_firing(
    rule: Rule, firing: Firing, template: bytes | Refused | None, names: Mapping[str, str]
) -> bytes | Refused:
    """The filled request as JSON; the same firing gives the same bytes.

    `template` is the content of `rule.request_uri` when the rule was accepted, or why it is not known; None if the
    request is inline. `names` fill the template's placeholders of the deployment. The policy may have changed since the
    rule was checked, so the launch checks the filled request in full again.
    """
    document: object = rule.request
    if rule.request_uri is not None:
        read = parse_template(rule.request_uri, template, names)
        if isinstance(read, Refused) or read.faults or not isinstance(read.value, dict):
            return Refused(faults=read.faults)
        document = read.value
        if made_by(read.value) != rule.makes:
            return refusal_of(
                f"{rule.request_uri} no longer names the model, output or champion that it named when the rule was checked",
                repair="drop the rule again, so that the new version is checked for loops",
            )
    if missing := filling.why_unfilled(filling.find_placeholders(document), firing.values):
        return refusal_of(missing)
    return json_line(filling.filled_request(document, firing.values)).encode()
