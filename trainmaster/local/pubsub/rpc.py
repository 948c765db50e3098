"""gRPC's side: which methods exist, and how a refusal travels."""

import functools
import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import grpc
from google.protobuf.empty_pb2 import Empty
from google.rpc import error_details_pb2, status_pb2

from trainmaster.local.injections import Injections
from trainmaster.local.pubsub import iam, wire
from trainmaster.local.pubsub.broker import Broker
from trainmaster.local.pubsub.errors import InvalidAckIds, PubSubError
from trainmaster.local.pubsub.iam import IamPolicy
from trainmaster.local.pubsub.injections import opening, place_of, struck_call
from trainmaster.local.pubsub.publisher import Publisher
from trainmaster.local.pubsub.streaming import serve_stream
from trainmaster.local.pubsub.subscriber import Subscriber

_LOG = logging.getLogger(__name__)

Method: TypeAlias = Callable[[wire.Message, float], Awaitable[wire.Message]]
# grpcio ships no types; a call's context and a handler are Any.
Context: TypeAlias = Any
Handler: TypeAlias = Any

_PUBLISHER = "google.pubsub.v1.Publisher"
_SUBSCRIBER = "google.pubsub.v1.Subscriber"
_IAM = "google.iam.v1.IAMPolicy"
_DEFAULT_REMAINING_S = 60.0


def services(broker: Broker, publisher: Publisher, subscriber: Subscriber) -> list[Handler]:
    """The generic handlers of every service."""
    stream = grpc.stream_stream_rpc_method_handler(
        _stream(broker),
        request_deserializer=wire.request_class("StreamingPull").FromString,
        response_serializer=wire.StreamingPullResponse.SerializeToString,
    )
    return [
        _service(_PUBLISHER, publisher, {"CreateTopic": wire.Topic}, injections=broker.injections),
        _service(
            _SUBSCRIBER,
            subscriber,
            {"CreateSubscription": wire.Subscription},
            {"StreamingPull": stream},
            injections=broker.injections,
        ),
        _service(_IAM, IamPolicy(broker), iam.REQUESTS, injections=broker.injections),
    ]


def _service(
    name: str,
    servicer: object,
    requests: Mapping[str, wire.MessageClass],
    more: Mapping[str, Handler] | None = None,
    *,
    injections: Injections,
) -> Handler:
    """A handler for every public coroutine of the servicer, by its name."""
    handlers = dict(more or {})
    for method_name, method in inspect.getmembers(servicer, inspect.iscoroutinefunction):
        if not method_name.startswith("_"):
            request = requests.get(method_name) or wire.request_class(method_name)
            handlers[method_name] = grpc.unary_unary_rpc_method_handler(
                _unary(method, method_name, injections),
                request_deserializer=request.FromString,
                response_serializer=_serialize,
            )
    return grpc.method_handlers_generic_handler(name, handlers)


def _serialize(message: wire.Message) -> bytes:
    return bytes(message.SerializeToString())


def _unary(
    method: Method, method_name: str, injections: Injections
) -> Callable[[wire.Message, Context], Awaitable[wire.Message]]:
    at = place_of(method_name)

    async def handle(request: wire.Message, context: Context) -> wire.Message:
        given_s = context.time_remaining()
        remaining_s = _DEFAULT_REMAINING_S if given_s is None else given_s
        try:
            if injections.active and injections.concerns(at):
                do = functools.partial(method, request, remaining_s)
                return await struck_call(injections, method_name, request, do, peer=context.peer())
            return await method(request, remaining_s)
        except PubSubError as refusal:
            return await _refuse(context, refusal)

    return handle


def _stream(broker: Broker) -> Callable[[AsyncIterator[wire.Message], Context], AsyncIterator[wire.Message]]:
    async def handle(requests: AsyncIterator[wire.Message], context: Context) -> AsyncIterator[wire.Message]:
        try:
            if broker.injections.active:
                await opening(broker.injections)
            async for response in serve_stream(broker, requests):
                yield response
        except PubSubError as refusal:
            await _refuse(context, refusal)

    return handle


async def _refuse(context: Context, refusal: PubSubError) -> wire.Message:
    """End the call with the refusal's status; never returns."""
    await context.abort(refusal.code, str(refusal), trailing_metadata=_details(refusal))
    return Empty()


def _details(refusal: PubSubError) -> tuple[tuple[str, bytes], ...]:
    """Which acknowledgements failed under exactly-once delivery, as the client libraries read it."""
    if not isinstance(refusal, InvalidAckIds):
        return ()
    info = error_details_pb2.ErrorInfo(
        reason="PERMANENT_FAILURE_INVALID_ACK_ID",
        domain="pubsub.googleapis.com",
        metadata=dict.fromkeys(refusal.ack_ids, "PERMANENT_FAILURE_INVALID_ACK_ID"),
    )
    status = status_pb2.Status(code=refusal.code.value[0], message=str(refusal))
    status.details.add().Pack(info)
    return (("grpc-status-details-bin", status.SerializeToString()),)
