"""Events are understood in every form in which they are delivered, and known again when they come twice."""

import base64
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.narrowing import instance_of
from trainmaster.orchestrator.core.completion.entry import parse_hint
from trainmaster.orchestrator.core.errors import EventMalformed
from trainmaster.orchestrator.core.events.envelope import Envelope, PubsubMessage, pubsub_message
from trainmaster.orchestrator.core.requests.incoming import (
    Ignored,
    IncomingDocument,
    StoredObject,
    parse_message,
    parse_upload,
)

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
OBJECT = {
    "bucket": "inbox",
    "name": "requests/cassava.yaml",
    "generation": "1700000000000000",
    "size": "8",
    "timeCreated": "2026-03-01T11:00:00.123Z",
}


def envelope(data: object, **changes: Any) -> Envelope:
    whole = Envelope(id="9", type="t", source="s", subject="", time=NOW, received_at=NOW, data=data)
    return replace(whole, **changes)


def incoming(event: Envelope) -> IncomingDocument:
    return instance_of(IncomingDocument, parse_upload(event, "inbox"))


def test_an_upload_is_known_by_its_generation_and_dated_by_its_creation() -> None:
    first = incoming(envelope(OBJECT))
    assert first.content == StoredObject(
        bucket="inbox", name="requests/cassava.yaml", generation=1700000000000000, size_bytes=8
    )
    assert first.run_id.startswith("cassava-20260301t110000-")
    again = envelope(OBJECT, id="10", time=NOW + timedelta(hours=5), received_at=NOW + timedelta(hours=5))
    assert incoming(again).run_id == first.run_id
    assert incoming(envelope({**OBJECT, "generation": "1700000000000001"})).run_id != first.run_id


@pytest.mark.parametrize("name", ["rules/a.yaml", "rules/b/a.JSON"])
def test_a_rule_is_known_by_its_generation_alone(name: str) -> None:
    first, again = (
        incoming(envelope({**OBJECT, "name": name, "timeCreated": at}))
        for at in (None, "2026-01-01T00:00:00Z")
    )
    assert (first.source.kind, first.source.object_name) == ("rule_drop", name)
    assert first.run_id == again.run_id


def test_a_subject_of_a_legacy_event_may_carry_the_generation() -> None:
    data = {key: value for key, value in OBJECT.items() if key != "name"}
    legacy = envelope(data, subject="objects/requests/cassava.yaml#1700000000000000")
    assert incoming(legacy).run_id == incoming(envelope(OBJECT)).run_id


HIDDEN = "hidden or temporary"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("requests/cassava.txt", "does not end in any of .yaml, .yml, .json; rename it"),
        ("requests/x", "does not end in any of"),
        ("rules/nightly", "does not end in any of"),
        ("request/cassava.yaml", "did you mean 'requests/'?"),
        ("cassava.yaml", "copy a request to requests/, a rule to rules/"),
        ("data/1.csv", "is not in requests/, rules/"),
        ("requests/", HIDDEN),
        ("requests/.cassava.yaml.swp", HIDDEN),
        ("requests/.cassava.yaml", HIDDEN),
        ("requests/.git/cassava.yaml", HIDDEN),
        ("rules/.cassava.json", HIDDEN),
        ("requests/#cassava.yaml#", HIDDEN),
        ("requests/cassava.yaml_.gstmp", HIDDEN),
        ("gcloud/tmp/parallel_composite_uploads/part_0.yaml", HIDDEN),
        ("requests/gcloud/tmp/parallel_composite_uploads/part_0.yaml", HIDDEN),
        ("requests/cassava.yaml~", HIDDEN),
        ("notes.tmp", HIDDEN),
    ],
)
def test_other_objects_are_ignored_and_only_those_of_tools_without_an_answer(name: str, reason: str) -> None:
    found = instance_of(Ignored, parse_upload(envelope({**OBJECT, "name": name}), "inbox"))
    assert reason in found.reason
    assert (found.dropped is None) == (reason is HIDDEN)


@pytest.mark.parametrize("name", ["requests/a.yaml", "rules/a.yaml"])
def test_objects_of_other_buckets_are_ignored(name: str) -> None:
    event = envelope({**OBJECT, "name": name, "bucket": "ledger"})
    assert instance_of(Ignored, parse_upload(event, "inbox")).dropped is None


@pytest.mark.parametrize(
    "generation",
    [None, "", "x", "0", "-1", -1, "+1", "1_0", " 1", "\u0661", 1.5, "9" * 31, 2**63, "9" * 5000, {}, True],
)
def test_an_upload_without_a_valid_generation_is_malformed(generation: object) -> None:
    """Acknowledged: a delivery to come would have the same one."""
    with pytest.raises(
        EventMalformed, match="expected an integer from 1 to 9223372036854775807"
    ) as malformed:
        parse_upload(envelope({**OBJECT, "generation": generation}), "inbox")
    assert not malformed.value.retryable
    assert len(str(malformed.value)) < 500


@pytest.mark.parametrize("generation", ["1", 2**63 - 1])
def test_a_generation_is_a_positive_64_bit_integer(generation: object) -> None:
    content = instance_of(StoredObject, incoming(envelope({**OBJECT, "generation": generation})).content)
    assert content.generation == int(str(generation))


@pytest.mark.parametrize("size", [None, "", "-1", "9" * 31])
def test_an_upload_without_a_valid_size_is_malformed(size: object) -> None:
    with pytest.raises(EventMalformed, match="has no valid size"):
        parse_upload(envelope({**OBJECT, "size": size}), "inbox")


@pytest.mark.parametrize(
    "spelling",
    [
        {"messageId": "m", "publishTime": "2026-03-01T11:00:00Z"},
        {"message_id": "m", "publish_time": "2026-03-01T11:00:00Z"},
    ],
)
def test_a_message_is_read_in_both_spellings(spelling: dict[str, str]) -> None:
    message = pubsub_message(envelope({"message": {"data": base64.b64encode(b"x").decode(), **spelling}}))
    assert (message.message_id, message.data) == ("m", b"x")
    assert message.publish_time == datetime(2026, 3, 1, 11, tzinfo=UTC)


@pytest.mark.parametrize(
    "data",
    [None, {}, {"message": 3}, {"message": {"data": "%%%"}}, {"message": {"attributes": [], "data": "!"}}],
)
def test_an_event_without_a_message_is_malformed(data: object) -> None:
    with pytest.raises(EventMalformed):
        pubsub_message(envelope(data))


def test_a_message_without_data_is_an_empty_request() -> None:
    assert parse_message(envelope({"message": {"messageId": "m", "attributes": None}})).content == b""


def entry(**changes: Any) -> dict[str, Any]:
    whole: dict[str, Any] = {
        "insertId": "abc",
        "resource": {"type": "ml_job", "labels": {"job_id": "123", "task_name": "service"}},
        "textPayload": "Job completed successfully.",
        "timestamp": "2026-03-01T11:00:00.123456789Z",
    }
    return {**whole, **changes}


def hint(document: object) -> Any:
    message = PubsubMessage(
        message_id="m", publish_time=NOW, attributes={}, data=json.dumps(document).encode() + b"\n"
    )
    return parse_hint(message)


@pytest.mark.parametrize(
    ("change", "tells_end"),
    [
        ({}, True),
        ({"textPayload": "Job failed."}, True),
        ({"textPayload": None, "jsonPayload": {"message": "Job failed."}}, True),
        ({"textPayload": "The replica workerpool0-0 exited with a non-zero status of 1."}, False),
        ({"textPayload": "Job cancelled."}, False),
        ({"textPayload": 7}, False),
        ({"labels": {"ml.googleapis.com/trial_id": "1"}}, False),
        ({"labels": {"ml.googleapis.com/trial_id": ""}}, True),
        ({"labels": {"team": "agronomy"}}, True),
        ({"resource": {"type": "ml_job", "labels": {"job_id": "123", "task_name": "workerpool0-0"}}}, False),
    ],
)
def test_only_the_services_own_last_lines_tell_of_an_end(change: dict[str, Any], tells_end: bool) -> None:
    found = hint(entry(**change))
    assert (found.job_id, found.tells_end, found.insert_id) == ("123", tells_end, "abc")
    assert found.entry_time == datetime(2026, 3, 1, 11, 0, 0, 123456, tzinfo=UTC)


@pytest.mark.parametrize(
    "change",
    [
        {"resource": None},
        {"resource": {"type": "gce_instance", "labels": {"job_id": "123"}}},
        {"resource": {"type": "ml_job", "labels": {}}},
        {"resource": {"type": "ml_job", "labels": {"job_id": "../../customJobs/1"}}},
        {"resource": {"type": "ml_job", "labels": {"job_id": 123}}},
    ],
)
def test_an_entry_about_no_training_job_is_no_hint(change: dict[str, Any]) -> None:
    assert hint(entry(**change)) is None


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff", b"[" * 100_000])
def test_a_message_that_is_no_entry_is_malformed(content: bytes) -> None:
    with pytest.raises(EventMalformed):
        parse_hint(PubsubMessage(message_id="m", publish_time=NOW, attributes={}, data=content))


def test_a_time_before_all_years_is_no_time() -> None:
    found = hint(entry(timestamp="0001-01-01T00:00:00+14:00"))
    assert found.entry_time == NOW
