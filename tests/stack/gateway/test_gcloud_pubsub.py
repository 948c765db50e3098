"""gcloud's Pub/Sub commands, which speak REST; skipped where gcloud is not installed."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from .conftest import Replica

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("gcloud") is None, reason="gcloud is not installed"),
]


def test_gcloud_creates_lists_publishes_pulls_and_deletes(replica: Replica, tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "CLOUDSDK_CONFIG": str(tmp_path / "gcloud"),
        "CLOUDSDK_CORE_DISABLE_PROMPTS": "1",
        "CLOUDSDK_CORE_PROJECT": "gcloud-project",
        "CLOUDSDK_AUTH_DISABLE_CREDENTIALS": "true",
        "CLOUDSDK_API_ENDPOINT_OVERRIDES_PUBSUB": f"http://127.0.0.1:{replica.gateway.backends['pubsub'].http}/",
    }

    def gcloud(*arguments: str) -> str:
        done = subprocess.run(
            ["gcloud", "pubsub", *arguments],
            env=environment, capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout

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
