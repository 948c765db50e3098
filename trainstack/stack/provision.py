"""Creates a project's resources, as the deployment does; existing ones stay as they are."""

from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote

from google.protobuf.duration_pb2 import Duration
from google.pubsub_v1 import ExpirationPolicy, Subscription

from trainstack.events.backoff import Backoff
from trainstack.events.clients import PubsubClients
from trainstack.events.eventarc import (
    Transport,
    ensure_notification,
    ensure_subscription,
    ensure_topic,
    subscription_of,
    transport_of,
)
from trainstack.events.rest import CallRefusedError, call
from trainstack.functions.function import BucketTrigger, Function
from trainstack.stack.topology import KeptTopic, Topology, TopologySink

_CONFLICT, _CONDITION_NOT_MET = 409, 412


def provision(
    topology: Topology,
    triggers: Iterable[Function],
    *,
    storage_url: str,
    logging_url: str,
    clients: PubsubClients,
    backoff: Backoff,
    markers: Iterable[Path] = (),
) -> dict[str, Transport]:
    """Create everything in the topology; return the transport of each trigger's events, by its name.

    `triggers` are those of the functions and of the teams' topics. `markers` are objects that the deployment
    creates, each as its path in the folder of its bucket. Blocks.

    Raises:
        CallRefusedError: a service refused for another reason than an existing resource.
    """
    for role in topology.topics:
        ensure_topic(clients.publisher, topology.topic_name(role))
    for kept in topology.subscriptions:  # before any function: dead letters must find it
        ensure_subscription(clients.subscriber, kept_subscription(kept))
    for bucket in topology.buckets.values():
        _ensure_bucket(storage_url, bucket, topology.project, topology.region)
    for marker in markers:
        ensure_marker(storage_url, marker)
    transports: dict[str, Transport] = {}
    for function in triggers:
        transport = transport_of(function, project=topology.project, region=topology.region)
        transports[function.name] = transport
        ensure_topic(clients.publisher, transport.topic_name)
        ensure_subscription(clients.subscriber, subscription_of(function, transport, backoff))
        if isinstance(function.trigger, BucketTrigger):
            # Last: a notification published before there is a subscription would be lost.
            ensure_notification(storage_url, function.trigger.bucket, transport.topic_name)
    for sink in topology.sinks:
        _ensure_sink(logging_url, sink, topology.project)
    return transports


def kept_subscription(kept: KeptTopic) -> Subscription:
    """The subscription to create; it never expires, and redelivers unacknowledged messages at once."""
    return Subscription(
        name=kept.subscription_name,
        topic=kept.topic_name,
        ack_deadline_seconds=kept.ack_deadline_s,
        message_retention_duration=Duration(seconds=kept.retention_h * 3600),
        expiration_policy=ExpirationPolicy(),
    )


def _ensure_bucket(storage_url: str, bucket: str, project: str, region: str) -> None:
    wanted = {"name": bucket, "location": region.upper()}
    try:
        call("POST", storage_url, f"/storage/v1/b?project={quote(project)}", wanted)
    except CallRefusedError as refused:
        if refused.status != _CONFLICT:
            raise


def ensure_marker(storage_url: str, marker: Path) -> None:
    """Create the object, and that of a folder of its name, unless they exist."""
    # A folder of its name comes first: otherwise the object would be a file where the team's objects need a folder.
    marker.mkdir(exist_ok=True)
    for name in (marker.name, f"{marker.name}/"):  # as in trainmaster/deploy/terraform/buckets.tf
        query = f"uploadType=media&name={quote(name, safe='')}&ifGenerationMatch=0"
        try:
            call("POST", storage_url, f"/upload/storage/v1/b/{quote(marker.parent.name)}/o?{query}", "")
        except CallRefusedError as refused:
            if refused.status != _CONDITION_NOT_MET:
                raise


def _ensure_sink(logging_url: str, sink: TopologySink, project: str) -> None:
    """Create the sink, or update an existing one's filter and destination."""
    sinks = f"/v2/projects/{quote(project)}/sinks"
    wanted = {
        "name": sink.name,
        "destination": f"pubsub.googleapis.com/{sink.topic_name}",
        "filter": sink.filter,
    }
    try:
        call("POST", logging_url, f"{sinks}?uniqueWriterIdentity=true", wanted)
    except CallRefusedError as refused:
        if refused.status != _CONFLICT:
            raise
        call("PUT", logging_url, f"{sinks}/{quote(sink.name)}?uniqueWriterIdentity=true", wanted)
