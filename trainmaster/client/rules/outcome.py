"""The outcome of an order that was carried out: the command that shows what it started or changed."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainmaster.client.records import read_json
from trainmaster.client.rules.changing import run_fired_by
from trainmaster.orchestrator.core.names import in_team, split_object_uri
from trainmaster.orchestrator.core.runs.states import RunState

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients


@dataclass(frozen=True, kw_only=True)
class OrderOutcome:
    """`command` shows the result; `run_id` is of the run that the order started, or None."""

    command: str
    run_id: str | None = None


def outcome_of(clients: "Clients", status: Mapping[str, Any]) -> OrderOutcome | None:
    """The outcome of the order with this status; None for other files, and for an order that is not carried out.

    Costs one read, or up to five for an order to fire a rule.

    Raises:
        google.api_core.exceptions.GoogleAPICallError: the ledger cannot be read.
    """
    if status.get("state") != RunState.SUCCEEDED or not status.get("record_uri"):
        return None
    about = read_json(clients.storage, *split_object_uri(str(status["record_uri"]))) or {}
    match str(about.get("schema")).partition(".")[0]:
        case "run_record":
            return OrderOutcome(command=f"trainmaster status {about.get('run_id')}")
        case "champion":
            name = in_team(about.get("team"), str(about.get("model_name")))
            return OrderOutcome(command=shlex.join(["trainmaster", "champions", "show", name]))
        case "rule_status" if about.get("rule_id"):
            return _of_firing(clients, str(about["rule_id"]), str(status.get("run_id")))
        case _:
            return None


def _of_firing(clients: "Clients", rule_id: str, order_id: str) -> OrderOutcome:
    run_id = run_fired_by(clients, rule_id, order_id)
    if run_id is None:  # other firings followed
        return OrderOutcome(command=shlex.join(["trainmaster", "rules", "show", rule_id]))
    return OrderOutcome(command=f"trainmaster status {run_id}", run_id=run_id)
