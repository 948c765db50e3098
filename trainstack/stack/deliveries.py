"""Brings events to functions: the resources that events need, a delivery for each trigger, and the scheduler."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import TypeAlias

from google.api_core.exceptions import GoogleAPICallError

from trainstack.events.clients import clients_of
from trainstack.events.cloudevent import CloudEvent
from trainstack.events.delivery import Delivery, Invoke
from trainstack.events.injections import with_injections
from trainstack.events.rest import CallRefusedError
from trainstack.events.schedule import Scheduler
from trainstack.functions.function import TopicTrigger
from trainstack.functions.host import FunctionsHost
from trainstack.functions.instance import Instance
from trainstack.iam import Grants
from trainstack.injections import Injections
from trainstack.stack.access import markers_of
from trainstack.stack.errors import StackRefusedError
from trainstack.stack.options import StackOptions
from trainstack.stack.provision import provision
from trainstack.stack.services import RunningServices
from trainstack.stack.topology import EventSource, Topology

Show: TypeAlias = Callable[[str, bytes], None]
"""Gets the id of a topic and the body of the event that a function is about to get for a message on it. Called in threads."""


async def deliver_events(
    options: StackOptions,
    topology: Topology,
    sources: Sequence[EventSource],
    services: RunningServices,
    host: FunctionsHost,
    *,
    running: AsyncExitStack,
    show: Show,
    grants: Grants,
) -> None:
    """Deliver events from now on, until `running` ends.

    Raises:
        StackRefusedError: a resource of the topology cannot be created.
    """
    clients = running.enter_context(clients_of(services.pubsub_host))
    try:
        transports = await asyncio.to_thread(
            provision,
            topology,
            [source.trigger for source in sources],
            storage_url=services.storage_url,
            logging_url=services.logging_url,
            clients=clients,
            backoff=options.backoff,
            markers=markers_of(grants, services.buckets_dir),
        )
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
        every=timedelta(seconds=options.tick_s) if options.tick_s else None,
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
