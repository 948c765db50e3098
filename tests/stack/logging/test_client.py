"""The official Python client over HTTP."""

from datetime import UTC, datetime, timedelta

import pytest
from google.api_core.exceptions import BadRequest
from google.cloud.logging import ASCENDING, DESCENDING
from google.cloud.logging_v2.resource import Resource

from tests.stack.logging.stack import DAY, JOB_LOG, RESOURCE, Stack, service_entry

# Without an explicit project, the client queries the network for Google's metadata server.
HERE = Resource(type="global", labels={})


def test_the_client_reads_back_what_it_logged(stack: Stack) -> None:
    logger = stack.client.logger("ml.googleapis.com%2F123", resource=HERE)
    resource = Resource(type="ml_job", labels=RESOURCE["labels"])
    logger.log_text(
        "hello", severity="NOTICE", resource=resource, labels={"a": "b"}, trace="projects/p1/traces/t"
    )
    logger.log_struct({"model_path": "gs://b/m", "n": 3}, severity="ERROR", resource=resource)
    logger.log_empty(severity="DEBUG", resource=resource)
    (text, struct) = stack.client.list_entries(filter_="severity>=NOTICE", order_by=ASCENDING)
    assert (text.payload, text.severity, text.labels, text.trace) == (
        "hello", "NOTICE", {"a": "b"}, "projects/p1/traces/t",
    )  # fmt: skip
    assert (struct.payload, struct.severity) == ({"model_path": "gs://b/m", "n": 3}, "ERROR")
    assert struct.resource == resource
    assert struct.log_name == JOB_LOG
    assert struct.insert_id != text.insert_id
    assert abs(datetime.now(UTC) - struct.timestamp) < timedelta(minutes=1)


def test_pages_join_without_gap_or_repeat_in_both_directions(stack: Stack) -> None:
    stack.write(*(service_entry(str(number), timestamp=f"{DAY}T00:00:00Z") for number in range(25)))
    stack.write(*(service_entry(str(number), timestamp=f"{DAY}T00:00:01Z") for number in range(25, 40)))
    window = f'timestamp>="{DAY}T00:00:00Z"'
    forward = [
        entry.payload for entry in stack.client.list_entries(filter_=window, order_by=ASCENDING, page_size=7)
    ]
    backward = [
        entry.payload for entry in stack.client.list_entries(filter_=window, order_by=DESCENDING, page_size=7)
    ]
    assert forward == [str(number) for number in range(40)]
    assert backward == forward[::-1]


def test_a_page_ends_before_a_long_search_does_and_leads_on(stack: Stack) -> None:
    texts = [*("ab" * 100_000 for _ in range(5)), f"{'ab' * 100_000} found"]
    stack.write(*(service_entry(text, timestamp=f"{DAY}T14:00:0{at}Z") for at, text in enumerate(texts)))
    wanted = f'timestamp>="{DAY}T14:00:00Z" AND textPayload=~"[ab]*a[ab]{{99}} f"'
    body = {"resourceNames": ["projects/p1"], "filter": wanted}
    first = stack.call("POST", "/v2/entries:list", body)
    assert "entries" not in first
    assert first["nextPageToken"]
    (entry,) = stack.client.list_entries(filter_=wanted)
    assert entry.payload == texts[-1]


def test_an_invalid_filter_is_refused_in_lists_and_sinks(stack: Stack) -> None:
    with pytest.raises(BadRequest, match="unexpected '='"):
        list(stack.client.list_entries(filter_="severity = = 3"))
    destination = "pubsub.googleapis.com/projects/p1/topics/t-1"
    with pytest.raises(BadRequest, match="no field 'thud'"):
        stack.client.sink("s1", filter_="thud=1", destination=destination).create()
