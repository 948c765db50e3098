"""Logs, metrics, and what is honoured of every method."""

from datetime import UTC, datetime, timedelta

import pytest
from google.api_core.exceptions import BadRequest, Conflict, NotFound

from tests.judges.surfaces import gaps
from tests.stack.logging.stack import RESOURCE, Stack, service_entry
from tests.stack.logging.test_filters import passes
from trainstack.logging.entry import SURFACE
from trainstack.logging.filters.fields import FIELDS


def test_the_table_has_every_parameter_and_field_of_the_methods_that_are_served() -> None:
    assert gaps(SURFACE, "logging.v2") == []


def test_every_field_of_an_entry_that_is_honoured_can_be_filtered_by() -> None:
    honoured = {
        path.split(".")[0] for path, kind in SURFACE.bodies["LogEntry"].kinds.items() if kind == "honoured"
    }
    assert honoured == FIELDS.keys() - {"metadata", "receiveTimestamp"}


def test_a_log_is_listed_until_it_is_deleted(stack: Stack) -> None:
    log = "projects/p1/logs/Some%2Flog"
    stack.write(service_entry("one", logName=log), service_entry("two"))
    first = stack.call("GET", "/v2/projects/p1/logs?pageSize=1")
    assert first["logNames"] == [log]
    logger = stack.client.logger("Some%2Flog")
    logger.delete()
    assert stack.call("GET", f"/v2/projects/p1/logs?pageToken={first['nextPageToken']}")["logNames"] != [log]
    assert [entry["textPayload"] for entry in stack.entries()] == ["two"]
    with pytest.raises(NotFound):
        logger.delete()


def test_a_metric_is_kept_and_shown(stack: Stack) -> None:
    metric = stack.client.metric("errors/all", filter_="severity>=ERROR", description="d")
    metric.create()
    with pytest.raises(Conflict):
        stack.client.metric("errors/all", filter_="severity>=ERROR").create()
    with pytest.raises(BadRequest, match="no field 'thud'"):
        stack.client.metric("other", filter_="thud=1").create()
    metric.filter_ = "severity>=ALERT"
    metric.update()
    (listed,) = stack.client.list_metrics()
    assert (listed.name, listed.filter_, listed.description) == ("errors/all", "severity>=ALERT", "d")
    metric.delete()
    assert not metric.exists()


def test_an_entrys_resource_is_completed_and_must_be_one_of_the_services(stack: Stack) -> None:
    stack.write(service_entry("x", resource={"type": "global"}))
    assert stack.entries()[0]["resource"] == {"type": "global", "labels": {"project_id": "p1"}}
    for resource, named in (({"type": "nonsense"}, "'nonsense'"), ({}, "must be specified for each")):
        assert named in stack.write(service_entry("x", resource=resource))["error"]["message"]


def test_an_entry_past_its_retention_is_exported_and_not_stored(stack: Stack) -> None:
    stack.topic("logs")
    stack.sink("s1", "logs", "")
    stack.write(service_entry("old", timestamp="2020-01-01T00:00:00Z"))
    assert [entry["textPayload"] for entry in stack.received("logs", 1)] == ["old"]
    assert stack.entries() == []
    soon = f"{datetime.now(UTC) + timedelta(hours=25):%Y-%m-%dT%H:%M:%SZ}"
    assert "24 hours" in stack.write(service_entry("new", timestamp=soon))["error"]["message"]


def test_values_are_of_the_fields_types_and_no_name_is_ignored(stack: Stack) -> None:
    request = {"latency": "1.5", "request_size": "many", "colour": "red"}
    message = stack.write(service_entry("x", httpRequest=request, traceSampled="yes"))["error"]["message"]
    for named in (
        "latency must be a duration",
        "requestSize must be",
        "LogEntry.httpRequest.colour is unknown",
        "traceSampled",
    ):
        assert named in message
    assert (
        "fields is not imitated"
        in stack.call("GET", "/v2/projects/p1/sinks?fields=sinks")["error"]["message"]
    )
    stack.write(service_entry("kept", httpRequest={"request_size": 5}), dryRun=False)
    stack.write(service_entry("not kept"), dryRun=True)
    assert [entry["httpRequest"] for entry in stack.entries(projectIds=["p1"])] == [{"requestSize": "5"}]


@pytest.mark.parametrize(
    ("text", "expected"),
    [('>"1s"', True), ('>"1500ms"', False), (">=1.5s", True), ('<"0.1h"', True), ("!=2s", True)],
)
def test_durations_are_compared_by_length(text: str, expected: bool) -> None:
    entry = {**service_entry("x"), "resource": RESOURCE, "httpRequest": {"latency": "1.500s"}}
    assert passes(f"httpRequest.latency{text}", entry) is expected
