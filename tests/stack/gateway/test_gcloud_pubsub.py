"""gcloud's Pub/Sub commands, which speak REST; skipped where gcloud is not installed."""

import json
import shutil
from pathlib import Path

import pytest

from tests.stack.gcloud import gcloud_of

from .conftest import Replica

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("gcloud") is None, reason="gcloud is not installed"),
]


def test_gcloud_creates_lists_publishes_pulls_and_deletes(replica: Replica, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{replica.gateway.backends['pubsub'].http}/"
    gcloud = gcloud_of("pubsub", api="PUBSUB", url=url, project="gcloud-project", folder=tmp_path)
    gcloud("topics", "create", "topic-1")
    gcloud("subscriptions", "create", "subscription-1", "--topic=topic-1", "--ack-deadline=20")
    gcloud("topics", "publish", "topic-1", "--message=hello", "--attribute=key=value")
    (pulled,) = json.loads(gcloud("subscriptions", "pull", "subscription-1", "--auto-ack", "--format=json"))
    assert pulled["message"]["attributes"] == {"key": "value"}
    (listed,) = json.loads(gcloud("subscriptions", "list", "--format=json"))
    assert (listed["name"], listed["ackDeadlineSeconds"]) == (
        "projects/gcloud-project/subscriptions/subscription-1",
        20,
    )
    gcloud("topics", "delete", "topic-1")
    assert json.loads(gcloud("topics", "list", "--format=json")) == []
