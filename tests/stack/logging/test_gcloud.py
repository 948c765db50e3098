"""gcloud as a second opinion; collected only where it is installed."""

import json
from pathlib import Path

import pytest

from tests.stack.gcloud import gcloud_of
from tests.stack.logging.stack import Stack


@pytest.mark.slow
def test_gcloud_writes_reads_and_keeps_sinks(stack: Stack, tmp_path: Path) -> None:
    gcloud = gcloud_of("logging", api="LOGGING", url=f"{stack.url}/", project="p1", folder=tmp_path)
    destination = "pubsub.googleapis.com/projects/p1/topics/logs"
    stack.topic("logs")
    gcloud("sinks", "create", "s2", destination, "--log-filter=severity>=CRITICAL")
    gcloud("sinks", "update", "s2", "--log-filter=severity>=ERROR")
    gcloud("write", "mylog", '{"message": "m", "x": 1}', "--payload-type=json", "--severity=ERROR")
    (entry,) = json.loads(gcloud("read", "severity>=ERROR AND jsonPayload.x=1", "--format=json"))
    assert (entry["logName"], entry["jsonPayload"]) == ("projects/p1/logs/mylog", {"message": "m", "x": 1})
    assert [one["jsonPayload"] for one in stack.received("logs", 1)] == [{"message": "m", "x": 1}]
    (sink,) = json.loads(gcloud("sinks", "list", "--format=json"))
    assert (sink["name"], sink["filter"]) == ("s2", "severity>=ERROR")
