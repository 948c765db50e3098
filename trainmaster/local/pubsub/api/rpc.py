"""gRPC's side: how requests come to methods, and how a refusal travels."""

import functools
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NoReturn, TypeAlias

import grpc
from google.rpc import error_details_pb2, status_pb2

from trainmaster.local.injections import Injections
from trainmaster.local.pubsub import wire
from trainmaster.local.pubsub.api.methods import REQUESTS, Method, methods_of
from trainmaster.local.pubsub.api.streaming import serve_stream
from trainmaster.local.pubsub.errors import InvalidAckIds, PubSubError
from trainmaster.local.pubsub.injections import opening, place_of, struck_call
from trainmaster.local.pubsub.resources import Subscriptions, Topics
from trainmaster.local.pubsub.service import Service

# grpcio ships no types; a call's context and a handler are Any.
Context: TypeAlias = Any
Handler: TypeAlias = Any

_DEFAULT_REMAINING_S = 60.0


def handlers_of(service: Service, topics: Topics, subscriptions: Subscriptions) -> list[Handler]:
    """The generic handlers of every service."""
    stream = grpc.stream_stream_rpc_method_handler(
        _stream(service),
        request_deserializer=wire.request_class("StreamingPull").FromString,
        response_serializer=wire.StreamingPullResponse.SerializeToString,
    )
    handlers = []
    for name, methods in methods_of(service, topics, subscriptions).items():
        unary = {
            method_name: grpc.unary_unary_rpc_method_handler(
                _unary(method, method_name, service.injections),
                request_deserializer=(
                    REQUESTS.get(method_name) or wire.request_class(method_name)
                ).FromString,
                response_serializer=_serialize,
            )
            for method_name, method in methods.items()
        }
        streams = {"StreamingPull": stream} if name.endswith("Subscriber") else {}
        handlers.append(grpc.method_handlers_generic_handler(name, {**unary, **streams}))
    return handlers


def _serialize(message: wire.Message) -> bytes:
    return bytes(message.SerializeToString())


def _unary(
    method: Method, method_name: str, injections: Injections
) -> Callable[[wire.Message, Context], Awaitable[wire.Message]]:
    at = place_of(method_name)

    async def do(request: wire.Message, context: Context) -> wire.Message:
        if not inspect.iscoroutinefunction(method):
            return method(request)
        given_s = context.time_remaining()
        return await method(request, _DEFAULT_REMAINING_S if given_s is None else given_s)

    async def handle(request: wire.Message, context: Context) -> wire.Message:
        try:
            if injections.active and injections.concerns(at):
                again = functools.partial(do, request, context)
                return await struck_call(injections, method_name, request, again, peer=context.peer())
            return await do(request, context)
        except PubSubError as refusal:
            await _refuse(context, refusal)

    return handle


def _stream(
    service: Service,
) -> Callable[[AsyncIterator[wire.Message], Context], AsyncIterator[wire.Message]]:
    async def handle(requests: AsyncIterator[wire.Message], context: Context) -> AsyncIterator[wire.Message]:
        try:
            if service.injections.active:
                await opening(service.injections)
            async for response in serve_stream(service, requests):
                yield response
        except PubSubError as refusal:
            await _refuse(context, refusal)

    return handle


async def _refuse(context: Context, refusal: PubSubError) -> NoReturn:
    """End the call with the refusal's status."""
    await context.abort(refusal.code, str(refusal), trailing_metadata=_details(refusal))
    raise AssertionError("to abort a call raises")


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
