"""An order is published once under its own key, and followed to its outcome, on real Pub/Sub and storage servers."""

import pytest

from tests.client.answering import Functions, answering, served_functions
from tests.client.rule_documents import example, write_rules
from tests.fixtures import fixture_of
from trainmaster.client.errors import ClientRefused, TimedOut
from trainmaster.client.rules.champions import approve
from trainmaster.client.rules.changing import RuleRemoved, fire_rule
from trainmaster.client.rules.listing import find_rule
from trainmaster.client.rules.orders import give_order
from trainmaster.orchestrator.core.names import run_id_of_key

ORDER = {"fire": {"rule": "nightly"}}


functions = fixture_of(served_functions, scope="function")


def test_a_carried_out_order_returns_its_id_and_status(functions: Functions) -> None:
    with answering(functions, {"state": "retrying", "reason": "once more"}, {"state": "succeeded"}):
        order_id, status = give_order(functions.served.clients, ORDER, team=None, timeout_s=60)
    assert functions.orders == [ORDER]
    assert order_id == run_id_of_key("message", f"idempotency_key:{functions.keys[0]}")
    assert status["state"] == "succeeded"


def test_two_orders_have_different_keys(functions: Functions) -> None:
    for _ in range(2):
        with answering(functions, {"state": "held", "reason": "not now"}):
            assert (
                give_order(functions.served.clients, ORDER, team=None, timeout_s=60)[1]["reason"] == "not now"
            )
    assert len(set(functions.keys)) == 2


@pytest.mark.parametrize("state", ["rejected", "dead_letter"])
def test_a_refused_order_has_every_fault_in_printable_text(functions: Functions, state: str) -> None:
    status = {"state": state, "reason": "two faults", "problems": ["$.fire: one\x1b[2J", "$.fire: two"]}
    with answering(functions, status), pytest.raises(ClientRefused) as refused:
        give_order(functions.served.clients, ORDER, team=None, timeout_s=60)
    assert str(refused.value).splitlines() == ["$.fire: one [2J", "$.fire: two"]


def test_an_order_that_is_not_carried_out_in_time_can_be_looked_up(functions: Functions) -> None:
    with pytest.raises(TimedOut) as late:
        give_order(functions.served.clients, ORDER, team=None, timeout_s=0)
    functions.take()
    assert "the service has not answered" in str(late.value)
    assert str(late.value).endswith(f"trainmaster status {functions.keys[0]}")


def test_a_rule_whose_file_is_deleted_while_it_is_fired_is_reported_as_removed(functions: Functions) -> None:
    served = functions.served
    write_rules(served)
    weekly = find_rule(served.clients, "weekly")
    inbox = served.clients.storage.bucket(served.clients.context.inbox_bucket)
    status = {"state": "rejected", "problems": ["$.fire.rule: the rule weekly is removed"]}
    with (
        answering(functions, status, before=lambda _: inbox.delete_blob("rules/weekly.yaml")),
        pytest.raises(RuleRemoved, match="The rule weekly is removed"),
    ):
        fire_rule(served.clients, weekly, timeout_s=60)


def test_an_approval_names_the_challenger_that_was_seen(functions: Functions) -> None:
    """Another one that wins before the order arrives is not promoted unseen."""
    waiting = example("champion.v1.pending")
    waiting["pending"]["expires_at"] = "2999-01-01T00:00:00Z"
    functions.served.write("ledger", "champions/cassava-resnet50.json", waiting)
    with answering(functions, {"state": "succeeded"}):
        approve(functions.served.clients, "cassava-resnet50", None, reject=False, timeout_s=60)
    assert functions.orders[0]["approve"]["run"] == waiting["pending"]["reign"]["run_id"]
