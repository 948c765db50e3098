"""Injections into Pub/Sub: calls such as `pubsub.publish`, and each delivery of a message at `pubsub.deliver`."""

from collections.abc import Callable, Sequence

from trainstack.injections import InjectionKind, Injections
from trainstack.injections.active import Struck
from trainstack.injections.plan import CODES
from trainstack.pubsub import wire

DELIVER = "pubsub.deliver"
_LEAST_ABSENCE_S = 0.01


def status_of(struck: Struck) -> str:
    """The code of an injected error. A dropped call is UNAVAILABLE: many calls share one connection, so it is not cut."""
    is_lost = struck.injection.kind is InjectionKind.DROP
    return "UNAVAILABLE" if is_lost else CODES[struck.injection.code]


def through_injections(
    injections: Injections,
    taken: Sequence[wire.Message],
    *,
    subscription: str,
    topic: str,
    lose: Callable[[wire.Message], None],
    hold_back: Callable[[wire.Message, float], None],
) -> list[wire.Message]:
    """The messages to send to a subscriber, of those leased for it.

    A dropped message is lost for this subscription. A delayed one is redelivered after that many seconds, as
    after a lost delivery: it counts an attempt.
    """
    kept: list[wire.Message] = []
    overtaken: list[wire.Message] = []
    for index, one in enumerate(taken):
        subjects = (f"{subscription}#{one.message.message_id}", subscription, topic, *_objects([one.message]))
        injection = injections.strike(DELIVER, subjects)
        if injection is None:
            kept.append(one)
        elif injection.kind is InjectionKind.DROP:
            lose(one)
        elif injection.kind is InjectionKind.DUPLICATE:
            kept += [one, _copy_of(one)]
        elif injection.kind is InjectionKind.REORDER and index + 1 < len(taken):
            overtaken.append(one)
        else:
            # Never zero, so that an injection that always strikes lets other messages through.
            hold_back(one, max(injection.seconds, _LEAST_ABSENCE_S))
    return kept + overtaken


def _copy_of(delivery: wire.Message) -> wire.Message:
    """The same delivery with another ack id for the same lease: clients compare ids as text, this server reads the numbers in it."""
    head, dash, serial = delivery.ack_id.rpartition("-")
    copy = wire.ReceivedMessage()
    copy.CopyFrom(delivery)
    copy.ack_id = f"{head}{dash}0{serial}"
    return copy


def place_of(method_name: str) -> str:
    return f"pubsub.{method_name[0].lower()}{method_name[1:]}"


def subjects_of(request: wire.Message) -> tuple[str, ...]:
    """The topic, subscription or resource that the request names, and the objects of published notifications."""
    fields = request.DESCRIPTOR.fields_by_name
    named = [
        value
        for name in ("topic", "subscription", "name")
        if name in fields and isinstance(value := getattr(request, name), str) and value
    ]
    return (*named, *(_objects(request.messages) if "messages" in fields else []))


def _objects(messages: Sequence[wire.Message]) -> list[str]:
    return [
        f"{one.attributes['bucketId']}/{one.attributes['objectId']}"
        for one in messages
        if "bucketId" in one.attributes and "objectId" in one.attributes
    ]
