"""Brings events to functions: the resources that events need, a delivery for each trigger, and the scheduler."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote

from google.api_core.exceptions import GoogleAPICallError
from google.protobuf.duration_pb2 import Duration
from google.pubsub_v1 import ExpirationPolicy, Subscription

from trainstack.events.clients import PubsubClients, clients_of
from trainstack.events.cloudevent import CloudEvent
from trainstack.events.delivery import Delivery, Invoke, with_injections
from trainstack.events.eventarc import (
    Transport,
    ensure_notification,
    ensure_subscription,
    ensure_topic,
    subscription_of,
    transport_of,
)
from trainstack.events.rest import CallRefusedError, call
from trainstack.events.schedule import Scheduler
from trainstack.functions.function import BucketTrigger, Function, TopicTrigger
from trainstack.functions.instance import FunctionsHost, Instance
from trainstack.injections import Injections
from trainstack.stack.access import markers_of
from trainstack.stack.errors import StackRefusedError
from trainstack.stack.services import RunningServices
from trainstack.stack.topology import EventSource, KeptTopic, Topology, TopologySink

Show: TypeAlias = Callable[[str, bytes], None]
"""Gets the id of a topic and the body of the event that a function is about to get for a message on it. Called in threads."""


async def deliver_events(
    topology: Topology,
    sources: Sequence[EventSource],
    services: RunningServices,
    host: FunctionsHost,
    *,
    show: Show,
) -> None:
    """Deliver events from now on, until the services stop.

    Raises:
        StackRefusedError: a resource of the topology cannot be created.
    """
    running = services.running
    clients = running.enter_context(clients_of(services.pubsub_host))
    try:
        triggers = [source.trigger for source in sources]
        transports = await asyncio.to_thread(provision, topology, triggers, services, clients)
    except (CallRefusedError, GoogleAPICallError) as error:
        raise StackRefusedError(f"cannot create a resource of the topology: {error}") from error
    deliveries = [
        Delivery(
            function=source.trigger,
            transport=transports[source.trigger.name],
            subscriber=clients.subscriber,
            invoke=_invoking(source, host.instances[source.function], services.injections, show),
        )
        for source in sources
    ]
    running.push_async_callback(_stop_all, deliveries)
    for delivery in deliveries:
        delivery.start()
    scheduler = Scheduler(
        topology.schedules,
        publish=lambda topic_name, data: services.publisher(topic_name, [(data, {})]),
        every=timedelta(seconds=services.options.tick_s) if services.options.tick_s else None,
    )
    running.push_async_callback(scheduler.stop)
    scheduler.start()


async def _stop_all(deliveries: Sequence[Delivery]) -> None:
    await asyncio.gather(*(delivery.stop() for delivery in deliveries))


def _invoking(source: EventSource, instance: Instance, injections: Injections, show: Show) -> Invoke:
    """Posts events to the function's instance, with the injections there; one of a topic is shown before."""

    def post(event: CloudEvent) -> int:
        return instance.post(event.headers, event.body)

    injected = with_injections(source.function, post, kill=instance.kill, injections=injections)

    def show_and_post(event: CloudEvent) -> int:
        if isinstance(source.trigger.trigger, TopicTrigger):
            show(source.trigger.trigger.topic, event.body)
        return injected(event)

    return show_and_post


_CONFLICT, _CONDITION_NOT_MET = 409, 412


def provision(
    topology: Topology, triggers: Iterable[Function], services: RunningServices, clients: PubsubClients
) -> dict[str, Transport]:
    """Create everything in the topology, as the deployment does; existing resources stay as they are. Blocks.

    `triggers` are those of the functions and of the teams' topics. Returns the transport of each one's events, by its
    name.

    Raises:
        CallRefusedError: a service refused for another reason than an existing resource.
    """
    storage_url, backoff = services.storage_url, services.options.backoff
    for role in topology.topics:
        ensure_topic(clients.publisher, topology.topic_name(role))
    for kept in topology.subscriptions:  # before any function: dead letters must find it
        ensure_subscription(clients.subscriber, kept_subscription(kept))
    for bucket in topology.buckets.values():
        _ensure_bucket(storage_url, bucket, topology.project, topology.region)
    for marker in markers_of(services.grants, topology, services.buckets_dir):
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
        _ensure_sink(services.logging_url, sink, topology.project)
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
    access = {"uniformBucketLevelAccess": {"enabled": True}}
    wanted = {"name": bucket, "location": region.upper(), "iamConfiguration": access}
    _is_new(_CONFLICT, storage_url, f"/storage/v1/b?project={quote(project)}", wanted)


def ensure_marker(storage_url: str, marker: Path) -> None:
    """Create the object, and that of a folder of its name, unless they exist."""
    # A folder of its name comes first: otherwise the object would be a file where the team's objects need a folder.
    marker.mkdir(exist_ok=True)
    for name in (marker.name, f"{marker.name}/"):  # as in trainmaster/deploy/terraform/buckets.tf
        query = f"uploadType=media&name={quote(name, safe='')}&ifGenerationMatch=0"
        path = f"/upload/storage/v1/b/{quote(marker.parent.name)}/o?{query}"
        _is_new(_CONDITION_NOT_MET, storage_url, path, "")


def _ensure_sink(logging_url: str, sink: TopologySink, project: str) -> None:
    """Create the sink, or update an existing one's filter and destination."""
    sinks = f"/v2/projects/{quote(project)}/sinks"
    wanted = {
        "name": sink.name,
        "destination": f"pubsub.googleapis.com/{sink.topic_name}",
        "filter": sink.filter,
    }
    if not _is_new(_CONFLICT, logging_url, f"{sinks}?uniqueWriterIdentity=true", wanted):
        call("PUT", logging_url, f"{sinks}/{quote(sink.name)}?uniqueWriterIdentity=true", wanted)


def _is_new(existing: int, url: str, path: str, body: object) -> bool:
    """Create a resource; False if the service answers with the status `existing`."""
    try:
        call("POST", url, path, body)
    except CallRefusedError as refused:
        if refused.status != existing:
            raise
        return False
    return True
