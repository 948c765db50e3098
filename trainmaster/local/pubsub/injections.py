"""Where injections strike Pub/Sub: calls as `pubsub.publish`, and each delivery of a message at `pubsub.deliver`."""

from collections.abc import Awaitable, Callable, Sequence
from typing import NoReturn

import grpc

from trainmaster.local.injections import Call, Injection, Injections, Kind
from trainmaster.local.injections.apply import apply_injections
from trainmaster.local.injections.injection import CODES, DELIVERY_KINDS, OPENING_KINDS
from trainmaster.local.pubsub import wire
from trainmaster.local.pubsub.errors import PubSubError

DELIVER = "pubsub.deliver"
_LEAST_ABSENCE_S = 0.01


class InjectedError(PubSubError):
    """An injection refused the call, or reported an error after it was done."""

    def __init__(self, injection: Injection, code: grpc.StatusCode) -> None:
        super().__init__(f"The injection {injection.name!r} struck here ({injection.kind.value}).")
        self.code = code


async def struck_call(
    injections: Injections,
    method_name: str,
    request: wire.Message,
    do: Callable[[], Awaitable[wire.Message]],
) -> wire.Message:
    """The response of `do`, or what an injection turns it into.

    Raises:
        InjectedError: an error before or after. A dropped call fails as UNAVAILABLE: many calls share one
            connection, so it is not cut.
    """

    async def lose(injection: Injection) -> wire.Message:
        raise InjectedError(injection, grpc.StatusCode.UNAVAILABLE)

    call = Call(at=place_of(method_name), subjects=_subjects(request))
    return await apply_injections(injections, call, do, refuse=_refuse, lose=lose)


async def opening(injections: Injections) -> None:
    """Apply injections before a stream is served. Raises `InjectedError` if one refuses it."""

    async def nothing() -> None:
        pass

    call = Call(at=place_of("StreamingPull"), kinds=OPENING_KINDS)
    await apply_injections(injections, call, nothing, refuse=_refuse, lose=_refuse)


async def _refuse(injection: Injection) -> NoReturn:
    raise InjectedError(injection, grpc.StatusCode[CODES[injection.code]])


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
        injection = injections.strike(Call(at=DELIVER, subjects=subjects, kinds=DELIVERY_KINDS))
        if injection is None:
            kept.append(one)
        elif injection.kind is Kind.DROP:
            lose(one)
        elif injection.kind is Kind.DUPLICATE:
            kept += [one, _copied(one)]
        elif injection.kind is Kind.REORDER and index + 1 < len(taken):
            overtaken.append(one)
        else:
            # Never zero, so that an injection that always strikes lets other messages through.
            hold_back(one, max(injection.seconds, _LEAST_ABSENCE_S))
    return kept + overtaken


def _copied(delivery: wire.Message) -> wire.Message:
    """The same delivery with another ack id for the same lease: clients compare ids as text, this server reads the numbers in it."""
    head, dash, serial = delivery.ack_id.rpartition("-")
    copy = wire.ReceivedMessage()
    copy.CopyFrom(delivery)
    copy.ack_id = f"{head}{dash}0{serial}"
    return copy


def place_of(method_name: str) -> str:
    return f"pubsub.{method_name[0].lower()}{method_name[1:]}"


def _subjects(request: wire.Message) -> tuple[str, ...]:
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
