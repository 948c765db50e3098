"""JSON Schema accepts 50.0 as an integer: it becomes 50 where a schema requires an integer, and only there."""

import copy
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.core import vertex_files
from tests.core.requests.test_generated_requests import accepted, requests
from tests.core.roles import MACHINE, TARGET, answer, request
from tests.core.shipped import NAMES, REQUEST_RULES, ROOT, policy_document, schema
from tests.narrowing import instance_of, present
from trainmaster.orchestrator.adapters.job_messages import message_of
from trainmaster.orchestrator.core.documents.codec import decoded, encoded
from trainmaster.orchestrator.core.documents.document import Document, parse_document
from trainmaster.orchestrator.core.documents.validation import schema_faults
from trainmaster.orchestrator.core.documents.values import whole
from trainmaster.orchestrator.core.policy.policy import policy_from
from trainmaster.orchestrator.core.requests.reading import checked_request
from trainmaster.orchestrator.core.requests.request import Request
from trainmaster.orchestrator.core.requests.spec import spec_from
from trainmaster.orchestrator.core.requests.submission import submission_of
from trainmaster.orchestrator.core.runs.record import AcceptedRequest, Original, RunRecord, Source, Step
from trainmaster.orchestrator.core.runs.states import RunState

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
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


def record_of(found: Request) -> RunRecord:
    return RunRecord(
        run_id="run-1",
        state=RunState.RESERVED,
        source=Source(kind="message", event_id="1", event_time=NOW, received_at=NOW),
        attempt="a",
        updated_at=NOW,
        history=(Step(state=RunState.RESERVED, at=NOW),),
        request=AcceptedRequest(
            document=found.document,
            original=Original(uri="gs://ledger/submitted/m/0.json", sha256="0" * 64, dialect=found.dialect),
            model_name=found.spec.model_name,
            output_uri="gs://models/m/run-1",
        ),
    )


def text(value: object) -> str:
    return json.dumps(encoded(value), sort_keys=True)


def body(found: Request) -> Mapping[str, object]:
    """What the service is sent: of a discrete parameter 32.0 is as good as 32, and "2.0" for a count is not "2"."""
    return submission_of("run-1", found.spec, TARGET).body


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(document=requests(), data=st.data())
def test_decimal_points_change_neither_record_nor_job(document: dict[str, Any], data: st.DataObject) -> None:
    plain = accepted(document)

    def sprinkled(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: sprinkled(part) for key, part in value.items()}
        if isinstance(value, list):
            return [sprinkled(part) for part in value]
        return with_points(value) if data.draw(st.booleans()) else value

    found = instance_of(Request, answer(sprinkled(plain.document)))
    record = record_of(found)
    assert text(decoded(RunRecord, json.loads(text(record)))) == text(record)
    again = spec_from(present(record.request).document)
    assert again == found.spec == plain.spec
    assert message_of(submission_of("run-1", again, TARGET)) == message_of(
        submission_of("run-1", plain.spec, TARGET)
    )


@pytest.mark.parametrize(
    "document",
    [
        {**vertex_files.job_spec(), "scheduling": {"timeout": "3600s"}},
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


def test_a_point_may_stand_where_null_may_stand_too() -> None:
    document = request(fallbacks=[{"scheduling": {"flex_start": True, "max_wait_s": 60.0}}])
    assert schema_faults(SCHEMA, document) == []
    assert type(document["fallbacks"][0]["scheduling"]["max_wait_s"]) is int


def test_a_range_is_checked_of_a_number_with_a_point() -> None:
    (fault,) = schema_faults(SCHEMA, request(priority=101.0))
    assert (fault.path, fault.found) == ("$.priority", "101")


def test_a_policy_with_points_is_the_policy() -> None:
    admission = {
        "limits": [{"jobs": 2}, {"jobs": 1, "per": "model"}],
        "caps": {"runs_per_hour": 9, "cost_per_run": 5, "currency": "USD"},
    }
    written = {**policy_document(), "admission": admission}
    pointed = with_points(written)
    assert schema_faults(schema("policy.v1"), pointed) == []
    assert text(policy_from(pointed, NAMES).admission.limits) == text(
        policy_from(written, NAMES).admission.limits
    )
    assert policy_from(pointed, NAMES) == policy_from(written, NAMES)
    assert type(policy_from(pointed, NAMES).max_replicas) is int


def test_a_rule_with_points_is_the_rule() -> None:
    written: dict[str, Any] = yaml.safe_load(
        """
        when: [{new_data: {objects: "gs://data/**", min_objects: 3.0, quiet_s: 60.0, max_wait_s: 600.0}}]
        max_per_day: 4.0
        request: {}
        """
    )
    assert schema_faults(schema("retraining_rule.v1"), written) == []
    assert "." not in json.dumps([written["when"][0]["new_data"]["min_objects"], written["max_per_day"]])


@pytest.mark.parametrize("as_json", [True, False], ids=["json", "yaml"])
def test_the_text_may_be_json_or_yaml(as_json: bool) -> None:
    read = parse_document(json.dumps(request(priority=50.0)).encode(), as_json=as_json)
    found = instance_of(Request, checked_request(read, REQUEST_RULES))
    assert type(found.spec.priority) is int


@given(st.floats(allow_nan=True, allow_infinity=True) | st.integers() | st.booleans() | st.text())
def test_whole_changes_no_value_and_makes_no_huge_number(value: object) -> None:
    found = whole(value)
    assert found is value or (found == value and type(found) is int and abs(found) < 10**20)


def test_a_record_that_was_written_with_a_point_is_read() -> None:
    document = json.loads(text(record_of(accepted(request()))))
    submission = document["submission"]
    read = decoded(
        RunRecord, {**document, "submission": {**submission, "candidate": 1.0}}
    ).submission.candidate
    assert (read, type(read)) == (1, int)
    with pytest.raises(ValueError, match=r"candidate: int expected, found float"):
        decoded(RunRecord, {**document, "submission": {**submission, "candidate": 1.5}})


def test_there_are_examples_of_every_dialect() -> None:
    assert {path.parent.name for path in EXAMPLES} == {"vertex", "ai_platform"}
