"""A temporary reader of the job log topic: the function receives the same messages."""

import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from google.api_core.exceptions import DeadlineExceeded, GoogleAPICallError
from google.protobuf.duration_pb2 import Duration
from google.pubsub_v1 import SubscriberClient
from google.pubsub_v1.types import ExpirationPolicy, Subscription

from trainmaster.deploy.doctor.deployment import ExaminedDeployment
from trainmaster.orchestrator.core.events.self_test import MARK

_CALL_S = 30.0
_QUIET_S = 4.0
_LOOKS_S = 15.0
_EXPIRES_S = 24 * 3600  # the service's minimum


class ProbeSubscription:
    """A dedicated subscription. `cannot`: why it could not be created."""

    def __init__(self, subscriber: SubscriberClient, name: str, cannot: str) -> None:
        self._subscriber = subscriber
        self._name = name
        self.cannot = cannot

    def message_of(self, self_test_id: str) -> str:
        """The id of the message with the entry; empty if it did not arrive.

        Raises:
            GoogleAPICallError: the subscription cannot be read.
        """
        deadline = time.monotonic() + _LOOKS_S
        while time.monotonic() < deadline:
            try:
                pulled = self._subscriber.pull(
                    subscription=self._name, max_messages=100, timeout=_QUIET_S, retry=None
                )
            except DeadlineExceeded:
                return ""
            for received in pulled.received_messages:
                if _mark(received.message.data) == self_test_id:
                    return str(received.message.message_id)
            if not pulled.received_messages:
                return ""
            ack_ids = [received.ack_id for received in pulled.received_messages]
            self._subscriber.acknowledge(subscription=self._name, ack_ids=ack_ids, timeout=_CALL_S)
        return ""


@contextmanager
def witness(subscriber: SubscriberClient, deployment: ExaminedDeployment) -> Iterator[ProbeSubscription]:
    """A witness until the block ends. If its subscription cannot be deleted then, it expires after a day."""
    name = f"projects/{deployment.project}/subscriptions/trainmaster-self-test-{secrets.token_hex(6)}"
    wanted = Subscription(
        name=name,
        topic=deployment.topic("job_logs").resource,
        expiration_policy=ExpirationPolicy(ttl=Duration(seconds=_EXPIRES_S)),
        message_retention_duration=Duration(seconds=600),
    )
    try:
        subscriber.create_subscription(request=wanted, timeout=_CALL_S)
    except GoogleAPICallError as fault:
        yield ProbeSubscription(subscriber, name, str(fault.message))
        return
    try:
        yield ProbeSubscription(subscriber, name, "")
    finally:
        with suppress(GoogleAPICallError):
            subscriber.delete_subscription(subscription=name, timeout=_CALL_S)


def _mark(data: bytes) -> str:
    try:
        entry = json.loads(data)
        return str(entry["labels"][MARK])
    except (ValueError, KeyError, TypeError):
        return ""
