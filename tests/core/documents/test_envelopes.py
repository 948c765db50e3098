"""A document that another program put into an envelope is refused with the envelope's name and what to send instead."""

import base64
import gzip
import json
from typing import Any

import pytest

from trainmaster.orchestrator.core.documents.document import is_json, parse_document

REQUEST = json.dumps({"model_name": "m", "image": "i", "cluster": {"chief": {"machine": "n1-standard-4"}}})
DATA = base64.b64encode(REQUEST.encode()).decode()
EVENT = {"specversion": "1.0", "id": "1", "source": "//pubsub/t", "type": "google.cloud.pubsub.topic.v1.messagePublished"}  # fmt: skip
MESSAGE: dict[str, Any] = {"data": DATA, "messageId": "7", "publishTime": "2026-03-01T11:00:00Z"}


def told(content: bytes, what: str = "request") -> str:
    read = parse_document(content, as_json=is_json(content), what=what)
    assert read.value is None
    (fault,) = read.faults
    return str(fault)


@pytest.mark.parametrize(
    ("document", "name"),
    [
        ({"message": MESSAGE, "subscription": "projects/p/subscriptions/s"}, "the body of a Pub/Sub push"),
        ({"ackId": "a", "message": MESSAGE}, "a pulled Pub/Sub message"),
        ({"messages": [{"data": DATA}]}, "the body of a call to publish"),
        (MESSAGE, "a Pub/Sub message"),
        ({**EVENT, "data": {"message": MESSAGE}}, "a CloudEvent in structured mode"),
        ({**EVENT, "data_base64": DATA}, "a CloudEvent in structured mode"),
        (
            {"kind": "storage#object", "bucket": "b", "name": "requests/a.yaml", "generation": "1"},
            "a notification of Cloud Storage",
        ),
    ],
)
def test_an_envelope_of_googles_services_is_named(document: object, name: str) -> None:
    assert told(json.dumps(document).encode()).startswith(f"$: this is {name}, not the request itself; ")


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (gzip.compress(REQUEST.encode(), mtime=0), "gzip"),
        (b"Obj\x01\x04\x16avro.schema", "Avro"),
        (b"\xc3\x01" + bytes(8) + b"\x02m", "Avro"),
        (DATA.encode(), "base64"),
        (base64.urlsafe_b64encode(json.dumps({"ü": "?>~" * 9}, indent=1).encode()) + b"\n", "base64"),
        (base64.b64encode(gzip.compress(REQUEST.encode(), mtime=0)), "base64"),
        (f"{REQUEST}\n{REQUEST}\n".encode(), "several JSON lines"),
        (b'{"a": 1}\r\n{"b":\r\n', "several JSON lines"),
    ],
)
def test_another_encoding_is_named(content: bytes, name: str) -> None:
    assert f"this is {name}, not the rule itself" in told(content, "rule")


@pytest.mark.parametrize(
    "text",
    [
        REQUEST,
        f"{REQUEST}\n",
        json.dumps(json.loads(REQUEST), indent=2),
        "model_name: eyJtb2RlbF9uYW1lIjogIm0i",
    ],
)
def test_a_request_is_in_no_envelope(text: str) -> None:
    read = parse_document(text.encode(), as_json=is_json(text.encode()))
    assert (read.faults, isinstance(read.value, dict)) == ((), True)


def test_values_that_are_no_whole_document_may_look_like_one() -> None:
    assert parse_document(DATA.encode(), as_json=False, what="value").value == DATA
