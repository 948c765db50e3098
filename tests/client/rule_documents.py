"""Rules as the ledger and the inbox hold them, for commands and pages that show them."""

import json
from typing import Any

from tests.client.served import ROOT, Served

VALID = ROOT / "schemas/examples/valid"


def example(name: str) -> Any:  # Any: a JSON document
    """A document of schemas/examples."""
    return json.loads((VALID / f"{name}.json").read_text())


def _scheduled(book: Any) -> dict[str, Any]:
    """The example's rule under another id, with a schedule."""
    document = {**book["rules"][0]["document"], "when": [{"schedule": {"cron": "0 3 * * 1"}}, {"manual": {}}]}
    return {
        **book["rules"][0],
        "rule_id": "weekly",
        "dropped_name": "rules/weekly.yaml",
        "document": document,
    }


def write_rules(served: Served) -> None:
    """Four rules: one counts objects, one is held back, one is refused, and one is not answered yet; and a champion."""
    book = example("rule_book.v1.one_rule")
    book["rules"].append(_scheduled(book))
    served.write("ledger", "rules/book.json", book)
    status = example("rule_status.v1.accepted")
    served.write("ledger", f"status/{status['dropped_name']}.json", status)
    state = example("rule_state.v1.firing")
    state["waiting"][0]["count"] = 12
    served.write("ledger", "rule-state/cassava.new-data.json", state)
    held = {
        "condition": "manual",
        "reason": "its cooldown lasts until 13:00",
        "at": "2026-03-04T12:20:00.000000Z",
    }
    weekly = {**status, "dropped_name": "rules/weekly.yaml", "rule_id": "weekly", "held": held}
    del weekly["last_firing"]
    served.write("ledger", "status/rules/weekly.yaml.json", weekly)
    refused = example("rule_status.v1.refused") | {"dropped_name": "rules/bad.yaml", "rule_id": "bad"}
    served.write("ledger", "status/rules/bad.yaml.json", refused)
    for name in ("cassava/new-data", "weekly", "bad", "new"):
        served.write("inbox", f"rules/{name}.yaml", {})
    served.write("ledger", "champions/cassava-resnet50.json", example("champion.v1.promoted"))
