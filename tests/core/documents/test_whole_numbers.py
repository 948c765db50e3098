"""JSON Schema accepts 50.0 as an integer: it becomes 50 where a schema requires an integer, and only there."""

import copy
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.core.roles import MACHINE, TARGET, request
from tests.core.shipped import REQUEST_RULES, ROOT, schema
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.documents.document import Document
from trainmaster.orchestrator.core.documents.validation import schema_faults
from trainmaster.orchestrator.core.documents.values import whole
from trainmaster.orchestrator.core.requests.reading import checked_request
from trainmaster.orchestrator.core.requests.request import Request
from trainmaster.orchestrator.core.requests.spec import spec_from
from trainmaster.orchestrator.core.requests.submission import submission_of

SCHEMA = schema("training_request.v1")
EXACT = 2**53
ANYTHING = replace(REQUEST_RULES, policy=None)
EXAMPLES = sorted((ROOT / "examples").glob("vertex/*.yaml")) + sorted(
    (ROOT / "examples").glob("ai_platform/*.yaml")
)


def with_points(value: Any) -> Any:
    """The value, every whole number in it written with a point."""
    match value:
        case dict():
            return {key: with_points(part) for key, part in value.items()}
        case list():
            return [with_points(part) for part in value]
        case bool():
            return value
        case int() if abs(value) < EXACT:
            return float(value)
    return value


def text(value: object) -> str:
    return json.dumps(encoded(value), sort_keys=True)


def body(found: Request) -> Mapping[str, object]:
    """What the service is sent: of a discrete parameter 32.0 is as good as 32, and "2.0" for a count is not "2"."""
    return submission_of("run-1", found.spec, TARGET).body


@pytest.mark.parametrize(
    "document",
    [
        *(yaml.safe_load(path.read_text()) for path in EXAMPLES),
        request(
            priority=50,
            scheduling={"timeout_s": 7200},
            cluster={"chief": {**MACHINE, "disk": {"size_gb": 200}}, "workers": {"count": 2, **MACHINE}},
            fallbacks=[
                {"cluster": {"workers": {"machine": "n1-standard-8"}}},
                {"cluster": {"chief": {"accelerator": {"type": "NVIDIA_TESLA_T4", "count": 1}}}},
            ],
        ),
    ],
    ids=lambda document: "-".join(sorted(document))[:40],
)
def test_decimal_points_make_the_same_job_in_every_dialect(
    document: dict[str, Any],
) -> None:
    def read(written: dict[str, Any]) -> Request:
        found = checked_request(Document(value=copy.deepcopy(written), spelled={}), ANYTHING, name="m")
        assert isinstance(found, Request), [str(fault) for fault in found.faults]
        return found

    plain, pointed = read(document), read(with_points(document))
    assert body(pointed) == body(plain)
    # The record has the places of outputs apart: a jobDir yields to the policy, and is not in the canonical request.
    again = replace(
        spec_from(pointed.document),
        output_prefix_uri=pointed.spec.output_prefix_uri,
        model_uri=pointed.spec.model_uri,
    )
    assert text(again) == text(pointed.spec)
    assert again == plain.spec


def test_a_number_keeps_its_decimal_point() -> None:
    document = request(champion={"metric": "accuracy", "goal": "maximize", "margin": 1.0}, priority=7.0)
    assert schema_faults(SCHEMA, document) == []
    assert (document["priority"], type(document["priority"])) == (7, int)
    assert type(document["champion"]["margin"]) is float
    (fault,) = schema_faults(SCHEMA, request(env={"YEAR": 2026.0}))
    assert fault.repair == 'quote it: "2026.0"'


@pytest.mark.parametrize("value", [50.5, 1e300, True, "50"])
def test_a_value_that_is_not_an_integer_is_a_fault_and_stays_as_it_is(value: object) -> None:
    document = request(priority=value)
    (fault,) = [fault for fault in schema_faults(SCHEMA, document) if "expected" in fault.problem]
    assert (fault.path, fault.problem) == ("$.priority", "expected an integer")
    assert document["priority"] is value


@given(st.floats(allow_nan=True, allow_infinity=True) | st.integers() | st.booleans() | st.text())
def test_whole_changes_no_value_and_makes_no_huge_number(value: object) -> None:
    found = whole(value)
    assert found is value or (found == value and type(found) is int and abs(found) < 10**20)
