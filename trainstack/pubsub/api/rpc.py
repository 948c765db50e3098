"""The gRPC layer: dispatches requests to methods, and turns refusals into statuses."""

import asyncio
import contextlib
import functools
import inspect
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, NoReturn, TypeAlias

import grpc

from trainstack.errors import ApiError, InvalidArgumentError
from trainstack.iam.authentication import UnauthenticatedError, authenticate
from trainstack.iam.authorization import DeniedError, Resource, authorize
from trainstack.iam.principals import Principal, Tokens, acting_as
from trainstack.injections.active import Struck, apply_injections
from trainstack.pubsub import wire
from trainstack.pubsub.api.methods import METHODS
from trainstack.pubsub.checks.names import id_of
from trainstack.pubsub.checks.settings import MAX_ACK_DEADLINE_S, MIN_ACK_DEADLINE_S
from trainstack.pubsub.delivery.backlog import Holder
from trainstack.pubsub.delivery.subscription import Subscription
from trainstack.pubsub.errors import ResourceNotFound
from trainstack.pubsub.injections import place_of, status_of, subjects_of
from trainstack.pubsub.service import PubsubService, check_attached
from trainstack.tasks import cancel_all
from trainstack.transcoding.method import NotServed

# Responses stay small, so that several streams of one subscription share its messages evenly.
BATCH_MESSAGES = 200
BATCH_BYTES = 1_000_000


def _deadline(seconds: int) -> float:
    if not MIN_ACK_DEADLINE_S <= seconds <= MAX_ACK_DEADLINE_S:
        raise InvalidArgumentError(
            f"Invalid stream_ack_deadline_seconds {seconds}: it must be from "
            f"{MIN_ACK_DEADLINE_S} to {MAX_ACK_DEADLINE_S}."
        )
    return float(seconds)


async def serve_stream(
    service: PubsubService, requests: AsyncIterator[wire.Message], permit: Callable[[wire.Message], None]
) -> AsyncIterator[wire.Message]:
    """Serve one StreamingPull call: messages as they become ready, until the client closes its side.

    `permit` raises if the caller may not open the stream that the first request names.

    Raises:
        ResourceNotFound: there is no such subscription, or it was deleted in the meantime.
        InvalidArgumentError: the client closed before its first request; a malformed request; a deadline outside 10 to 600 s.
    """
    first = await anext(requests, None)
    if first is None:
        raise InvalidArgumentError(
            "The stream was closed before its first request, which must name a subscription."
        )
    permit(first)
    subscription = service.subscription(first.subscription)
    holder = Holder(
        deadline_s=_deadline(first.stream_ack_deadline_seconds),
        batch_bytes=BATCH_BYTES,
        max_messages=max(0, first.max_outstanding_messages) or math.inf,
        max_bytes=max(0, first.max_outstanding_bytes) or math.inf,
    )
    _settle(service, subscription, first)

    async def listen() -> None:
        try:
            async for request in requests:
                if request.stream_ack_deadline_seconds:
                    holder.deadline_s = _deadline(request.stream_ack_deadline_seconds)
                _settle(service, subscription, request)
        finally:
            subscription.notify()

    listening = asyncio.create_task(listen())
    try:
        while not listening.done():
            if subscription.deleted:
                raise ResourceNotFound(id_of(subscription.name))
            check_attached(subscription)
            if deliveries := service.take(subscription, holder, count=BATCH_MESSAGES):
                yield wire.StreamingPullResponse(received_messages=deliveries)
            else:
                await subscription.changed()
    finally:
        await cancel_all([listening])
    if not listening.cancelled() and isinstance(fault := listening.exception(), InvalidArgumentError):
        raise fault


def _settle(service: PubsubService, subscription: Subscription, request: wire.Message) -> None:
    """Process the acknowledgements and deadline changes of a stream's request."""
    ids, seconds = request.modify_deadline_ack_ids, request.modify_deadline_seconds
    if len(ids) != len(seconds):
        raise InvalidArgumentError(
            f"The request has {len(ids)} modify_deadline_ack_ids and {len(seconds)} modify_deadline_seconds; "
            "both must have the same length."
        )
    # A stream cannot report an invalid id: ignore it and process the others.
    with contextlib.suppress(InvalidArgumentError):
        service.acknowledge(subscription, request.ack_ids)
    with contextlib.suppress(InvalidArgumentError):
        service.modify_deadline(subscription, zip(ids, seconds, strict=True))


# grpcio ships no types, so a call's context and a handler are Any.
Context: TypeAlias = Any
Handler: TypeAlias = Any

_DEFAULT_REMAINING_S = 60.0
_STREAMING_PULL = "pubsub.streamingPull"
_REFUSALS = (ApiError, DeniedError, Struck, UnauthenticatedError)
_DENIED = "User not authorized to perform this action."
"""Source: https://github.com/googleapis/google-cloud-ruby/issues/17944"""


def handlers_of(service: PubsubService, tokens: Tokens | None = None) -> list[Handler]:
    """The generic handlers of every service; the last one refuses unsupported methods.

    `tokens` identify the principals of calls; without them, every call is the local user's. The service's grants decide
    what accounts may call; without them, every method.
    """
    stream = grpc.stream_stream_rpc_method_handler(
        _stream(service, tokens),
        request_deserializer=wire.StreamingPullRequest.FromString,
        response_serializer=wire.StreamingPullResponse.SerializeToString,
    )
    handlers: list[Handler] = []
    for name, methods in METHODS.items():
        unary = {
            method_name: grpc.unary_unary_rpc_method_handler(
                _unary(service, method_name, method, tokens),
                request_deserializer=wire.types_of(method_name)[0].FromString,
                response_serializer=lambda message: message.SerializeToString(),
            )
            for method_name, (_, method) in methods.items()
        }
        streams = {"StreamingPull": stream} if name.endswith("Subscriber") else {}
        handlers.append(grpc.method_handlers_generic_handler(name, {**unary, **streams}))
    return [*handlers, NotServed()]


def _unary(
    service: PubsubService, method_name: str, method: Callable[..., Any], tokens: Tokens | None
) -> Callable[[wire.Message, Context], Awaitable[wire.Message]]:
    async def do(request: wire.Message, context: Context) -> wire.Message:
        authorize(service.grants, place_of(method_name), dict(_resources(request)))
        if not inspect.iscoroutinefunction(method):
            return method(service, request)
        given_s = context.time_remaining()
        return await method(service, request, _DEFAULT_REMAINING_S if given_s is None else given_s)

    async def handle(request: wire.Message, context: Context) -> wire.Message:
        again, place = functools.partial(do, request, context), place_of(method_name)
        try:
            with acting_as(_principal(tokens, context)):
                subjects = subjects_of(request) if service.injections.concerns(place) else ()
                return await apply_injections(service.injections, place, subjects, again)
        except _REFUSALS as refusal:
            await _refuse(context, refusal)

    return handle


def _stream(
    service: PubsubService, tokens: Tokens | None
) -> Callable[[AsyncIterator[wire.Message], Context], AsyncIterator[wire.Message]]:
    async def handle(requests: AsyncIterator[wire.Message], context: Context) -> AsyncIterator[wire.Message]:
        try:
            principal = _principal(tokens, context)

            def permit(first: wire.Message) -> None:
                with acting_as(principal):
                    authorize(service.grants, _STREAMING_PULL, dict(_resources(first)))

            await apply_injections(service.injections, _STREAMING_PULL, (), _open)
            async for response in serve_stream(service, requests, permit):
                yield response
        except _REFUSALS as refusal:
            await _refuse(context, refusal)

    return handle


async def _open() -> None:
    """Nothing is done before a stream's first request."""


def _principal(tokens: Tokens | None, context: Context) -> Principal:
    """Raises `UnauthenticatedError`. A peer is `ipv4:127.0.0.1:41234`."""
    header = dict(context.invocation_metadata() or ()).get("authorization", "")
    return authenticate(tokens, authorization=str(header), peer=context.peer().split(":")[1])


async def _refuse(context: Context, refusal: Exception) -> NoReturn:
    """End the call with the refusal's status."""
    match refusal:
        case ApiError(status=status):
            await context.abort(grpc.StatusCode[status.name], str(refusal))
        case Struck():
            await context.abort(grpc.StatusCode[status_of(refusal)], str(refusal))
        case DeniedError():
            await context.abort(grpc.StatusCode.PERMISSION_DENIED, _DENIED)
        case _:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, str(refusal))
    raise AssertionError("abort() always raises")


def _resources(request: wire.Message) -> Iterator[tuple[str, Resource]]:
    """The topic, subscription and project in the request; of a new resource, the project that is to contain it."""
    fields = request.DESCRIPTOR.fields_by_name
    for kind in ("topic", "subscription", "snapshot"):
        if kind in fields:
            value = getattr(request, kind)
            yield kind, Resource(name=value if isinstance(value, str) else value.name)
    if "name" in fields:
        yield "schema", Resource(name=request.name.partition("@")[0])
    for field in ("project", "name", "parent"):
        if field in fields:
            yield "project", Resource(name="/".join(getattr(request, field).split("/")[:2]))
