"""Orders are distinguished from requests by their key, and checked like them."""

from typing import Any

import pytest
import yaml

from tests.core.retraining_cases import NOON, REQUEST
from tests.core.shipped import ROOT, schema
from tests.narrowing import instance_of
from trainmaster.orchestrator.core.documents.document import parse_document
from trainmaster.orchestrator.core.documents.faults import Refused
from trainmaster.orchestrator.core.orders.order import (
    ORDER_SCHEMA,
    CancelOrder,
    FireOrder,
    Order,
    RollbackOrder,
    parse_order,
    unknown_rule,
)
from trainmaster.orchestrator.core.requests.incoming import is_order

SCHEMA = schema(ORDER_SCHEMA)


def read(document: Any) -> Order | Refused | None:
    text = document if isinstance(document, str) else yaml.safe_dump(document)
    found = parse_document(text.encode(), as_json=False)
    return parse_order(found, SCHEMA, "o1", NOON) if is_order(found.value) else None


@pytest.mark.parametrize(
    ("document", "order"),
    [
        (
            {"fire": {"rule": "vision.cassava"}},
            FireOrder(order_id="o1", given_at=NOON, rule_id="vision.cassava"),
        ),
        ({"schema": "order.v1", "fire": {"rule": "a"}}, FireOrder(order_id="o1", given_at=NOON, rule_id="a")),
        ({"rollback": {"model_name": "cassava"}}, RollbackOrder(order_id="o1", model_name="cassava")),
        (
            {"rollback": {"model_name": "cassava", "to_run": "cassava-1"}},
            RollbackOrder(order_id="o1", model_name="cassava", to_run="cassava-1"),
        ),
        ({"cancel": {"run": "cassava-1"}}, CancelOrder(run_id="cassava-1")),
    ],
)
def test_an_order_is_read(document: Any, order: Order) -> None:
    assert read(document) == order


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[fire]",
        "fire: [",
        "just fire",
        yaml.safe_dump(REQUEST),
        yaml.safe_dump({**REQUEST, "args": ["--fire", "rollback"]}),
        (ROOT / "examples" / "cassava.yaml").read_text(),
    ],
)
def test_any_other_document_is_left_to_the_requests(text: str) -> None:
    assert read(text) is None


@pytest.mark.parametrize(
    ("document", "paths"),
    [
        ({"fire": {}}, {"$.fire.rule"}),
        ({"fire": {"rule": "../x"}}, {"$.fire.rule"}),
        ({"fire": {"rule": "a", "now": True}}, {"$.fire.now"}),
        ({"fire": "a"}, {"$.fire"}),
        ({"fire": {"rule": "a"}, "rollback": {"model_name": "m"}}, {"$.rollback"}),
        ({"fire": {"rule": "a"}, "cancel": {"run": "m-1"}}, {"$.cancel"}),
        ({"rollback": {"model_name": "m"}, "cancel": {"run": "m-1"}}, {"$.cancel"}),
        ({"cancel": {}}, {"$.cancel.run"}),
        ({"cancel": {"run": "runs/../m", "now": 1}}, {"$.cancel.run", "$.cancel.now"}),
        ({"rollback": {"to_run": "X"}}, {"$.rollback.model_name", "$.rollback.to_run"}),
        ({"fire": {"rule": "a"}, "model_name": "m"}, {"$.model_name"}),
        ("fire: {rule: no}", {"$.fire.rule"}),
        ("fire: {rule: a}\nfire: {rule: b}", {"$.fire"}),
    ],
)
def test_a_faulty_order_is_refused_with_every_fault(document: Any, paths: set[str]) -> None:
    refused = instance_of(Refused, read(document))
    assert {fault.path for fault in refused.faults} == paths


def test_an_order_for_an_unknown_rule_names_the_nearest() -> None:
    (fault,) = unknown_rule("casava", ["cassava", "features"]).faults
    assert fault.repair == "did you mean 'cassava'?"
    assert "none" in unknown_rule("a", []).faults[0].allowed
