"""The status of an order that was carried out names what it has started or changed."""

from pathlib import Path

import pytest

from tests.client.rule_documents import example, write_rules
from tests.client.served import Served, run_record, served_context

ORDER = "order-20260304t122000-3f9a1c04de"
FIRED = "weekly-20260304t122000-3f9a1c04de"


def shown(served: Served, about: str) -> str:
    uri = f"gs://{served.clients.context.ledger_bucket}/{about}"
    status = {
        "schema": "drop_status.v1",
        "dropped_name": "requests/order.yaml",
        "state": "succeeded",
        "run_id": ORDER,
        "updated_at": "2026-03-04T12:20:00.000000Z",
        "record_uri": uri,
    }
    served.write("ledger", "status/requests/order.yaml.json", status)
    done = served.trainmaster("status", "requests/order.yaml")
    assert done.status == 0, done.err
    return done.out


@pytest.mark.parametrize("event_id", [ORDER, "another"])
def test_the_run_that_an_order_fired_is_named_unless_other_firings_followed(
    tmp_path: Path, event_id: str
) -> None:
    with served_context(tmp_path) as served:
        write_rules(served)
        state = example("rule_state.v1.firing")
        firing = state["firing"] | {"run_id": FIRED}
        served.write("ledger", "rule-state/cassava.new-data.json", {**state, "firing": firing})
        source = run_record()["source"] | {"event_id": event_id}
        served.write("ledger", f"runs/{FIRED}.json", run_record(run_id=FIRED, source=source))
        screen = shown(served, "status/rules/cassava/new-data.yaml.json")
    if event_id == ORDER:
        assert f"run          {FIRED}\nnext         trainmaster status {FIRED}\n" in screen
    else:
        assert "next         trainmaster rules show cassava.new-data\n" in screen


def test_an_order_to_cancel_or_to_roll_back_names_what_shows_its_result(tmp_path: Path) -> None:
    with served_context(tmp_path) as served:
        served.write("ledger", f"runs/{FIRED}.json", run_record(run_id=FIRED))
        assert f"next         trainmaster status {FIRED}\n" in shown(served, f"runs/{FIRED}.json")
        champion = {"schema": "champion.v1", "model_name": "house"}
        served.write("ledger", "champions/house.json", champion)
        assert "next         trainmaster champions show house\n" in shown(served, "champions/house.json")
