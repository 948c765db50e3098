"""Two probes of the running deployment: a log entry that reports a job's end, and a dry-run request.

docs/how-to/deploy.md, section "Self-test", describes their form.

Their answers lie in the ledger: a log line comes late, or not at all, where logging itself is broken. No real
job is run, because it costs money and minutes.
"""

import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from google.api_core.exceptions import GoogleAPICallError
from google.cloud.logging import Client as LoggingClient
from google.cloud.logging import Resource
from google.cloud.storage import Client as StorageClient
from google.pubsub_v1 import PublisherClient
from google.pubsub_v1.types import PubsubMessage

from trainmaster.client.logs.line import COMPLETED
from trainmaster.client.records import read_json
from trainmaster.deploy.doctor.deployment import ExaminedDeployment
from trainmaster.orchestrator.core.events.self_test import (
    DRY_RUN,
    MARK,
    NO_JOB_ID,
    SELF_TEST_ID,
    SELF_TEST_PREFIX,
)

LOG_ID = "trainmaster-self-test"
_LOOK_EVERY_S = 1.0
_CALL_S = 30.0


@dataclass(kw_only=True)
class Probe:
    """One probe and its answer. `cannot`: why it could not be sent."""

    id: str = field(default_factory=lambda: secrets.token_hex(16))
    asked_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    message_id: str = ""
    cannot: str = ""
    answer: dict[str, Any] | None = None


def write_entry(logs: LoggingClient, project: str) -> Probe:
    """Write an entry like the last one of a job, for a job id that no job has."""
    probe = Probe()
    labels = {"project_id": project, "job_id": NO_JOB_ID, "task_name": "service"}
    resource = Resource(type="ml_job", labels=labels)
    try:
        # Without the resource, the client would ask the metadata server which machine it runs on.
        logs.logger(LOG_ID, resource=resource).log_struct(
            {"message": COMPLETED},
            labels={MARK: probe.id},
            severity="INFO",
            timestamp=probe.asked_at,
            insert_id=probe.id,
        )
    except GoogleAPICallError as fault:
        probe.cannot = str(fault.message)
    return probe


def publish_request(publisher: PublisherClient, deployment: ExaminedDeployment, document: bytes) -> Probe:
    """Publish the request as a dry run: it is checked but not run."""
    probe = Probe()
    message = PubsubMessage(data=document, attributes={DRY_RUN: "true", SELF_TEST_ID: probe.id})
    topic = deployment.topic("requests").resource
    try:
        answer = publisher.publish(topic=topic, messages=[message], timeout=_CALL_S)
        probe.message_id = str(answer.message_ids[0])
    except GoogleAPICallError as fault:
        probe.cannot = str(fault.message)
    return probe


def own_request(deployment: ExaminedDeployment) -> bytes:
    """A request for one small machine and the trainer's image, which most policies allow."""
    document = {
        "model_name": "self-test",
        "image": f"{deployment.trainer_image}@sha256:{0:064x}",  # a policy may require digests
        "cluster": {"chief": {"machine": "n1-standard-4"}},
        "scheduling": {"timeout_s": 3600},
    }
    return json.dumps(document).encode()


def wait_for_answers(
    storage: StorageClient, ledger_bucket: str, probes: Sequence[Probe], wait_s: float
) -> None:
    """Poll until every probe has its answer or `wait_s` seconds are over.

    Raises:
        GoogleAPICallError: the ledger cannot be read.
    """
    deadline = time.monotonic() + wait_s
    while True:
        waiting = [probe for probe in probes if probe.answer is None and not probe.cannot]
        for probe in waiting:
            probe.answer = read_json(storage, ledger_bucket, f"{SELF_TEST_PREFIX}{probe.id}.json")
        left = deadline - time.monotonic()
        if all(probe.answer is not None for probe in waiting) or not left > 0:
            return
        time.sleep(min(_LOOK_EVERY_S, left))
