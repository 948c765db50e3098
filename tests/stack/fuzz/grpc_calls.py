"""Calls of Pub/Sub's gRPC methods, with messages of any content and with bytes that are not a message."""

from dataclasses import dataclass
from random import Random
from typing import Any

import grpc
from google.protobuf.descriptor import FieldDescriptor
from google.pubsub_v1 import types

from tests.core.fuzz.mutation import NUMBERS, spoiled, text
from tests.core.fuzz.verdicts import Verdict, promised
from trainstack.pubsub import wire
from trainstack.pubsub.api.methods import REQUESTS, methods_of

PROJECT = "projects/my-project"
TOPIC, SUBSCRIPTION = f"{PROJECT}/topics/topic-1", f"{PROJECT}/subscriptions/subscription-1"
WORDS = (
    *(PROJECT, TOPIC, SUBSCRIPTION, f"{PROJECT}/topics/", "_deleted-topic_", "http://127.0.0.1:1/", "name"),
    *(f"{PROJECT}/snapshots/s-1", 'attributes.a = "b"', "NOT hasPrefix(attributes.a, ", "roles/x", "a", "push_config"),
)  # fmt: skip
_SERVICES = methods_of(type("_", (), {})())  # only the methods' names are read
_USUAL = {
    "name": (TOPIC, SUBSCRIPTION, f"{PROJECT}/topics/topic-2", f"{PROJECT}/subscriptions/subscription-2"),
    "topic": (TOPIC,),
    "subscription": (SUBSCRIPTION,),
    "project": (PROJECT,),
}
"""What fields of these names mostly hold, so that most calls get past the front door."""
METHODS = (
    *((service, method) for service, methods in _SERVICES.items() for method in methods),
    *(("google.pubsub.v1.Subscriber", method) for method in ("StreamingPull", "Seek", "ModifyPushConfig")),
)
_WAITING = {"Pull", "StreamingPull"}
_REMOVING = {"DeleteTopic", "DeleteSubscription"}
_UNMEANT = {grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL, grpc.StatusCode.DATA_LOSS}
_MOST_DEPTH = 4


@dataclass(frozen=True, kw_only=True)
class GrpcCall:
    """One call; `spoiled` says that the bytes may not be a message."""

    service: str
    method: str
    content: bytes
    spoiled: bool


class GrpcTarget:
    """A Pub/Sub server with a topic and a subscription; `close` it."""

    def __init__(self, address: str) -> None:
        self._channel = grpc.insecure_channel(address)
        self._provide()

    def close(self) -> None:
        self._channel.close()

    def draw(self, random: Random) -> GrpcCall:
        service, method = random.choice(METHODS)
        message = (REQUESTS.get(method) or wire.request_class(method))()
        _fill(message, random)
        content = message.SerializeToString()
        broken = random.random() < 0.2
        return GrpcCall(
            service=service,
            method=method,
            content=spoiled(content, random) if broken else content,
            spoiled=broken,
        )

    def feed(self, given: GrpcCall) -> Verdict:
        """The outcome of a call. Whatever it deleted is created again for the next call, which would be refused without it."""
        verdict = self._fed(given)
        if verdict is Verdict.TAKEN and given.method in _REMOVING:
            self._provide()
        return verdict

    def _fed(self, given: GrpcCall) -> Verdict:
        try:
            self._ask(given.service, given.method, given.content)
        except grpc.RpcError as refusal:
            code, words = refusal.code(), refusal.details() or ""
            # gRPC itself answers so to bytes that are not a message of the method.
            no_message = given.spoiled and "DecodeError" in words
            promised(
                holds=code not in _UNMEANT or no_message,
                promise="a status that is meant",
                found=(code, words),
            )
            promised(holds=bool(words), promise="a reason", found=code)
            return Verdict.REFUSED
        return Verdict.TAKEN

    def check(self) -> None:
        request = types.ListTopicsRequest.pb()(project=PROJECT).SerializeToString()
        promised(
            holds=self._ask("google.pubsub.v1.Publisher", "ListTopics", request) is not None,
            promise="a server that lives on",
            found="nothing",
        )

    def _provide(self) -> None:
        topic = types.Topic.pb()(name=TOPIC)
        subscription = types.Subscription.pb()(name=SUBSCRIPTION, topic=TOPIC)
        whole = types.DeleteSubscriptionRequest.pb()(subscription=SUBSCRIPTION)  # its topic may be deleted
        for service, method, message in (
            ("google.pubsub.v1.Publisher", "CreateTopic", topic),
            ("google.pubsub.v1.Subscriber", "DeleteSubscription", whole),
            ("google.pubsub.v1.Subscriber", "CreateSubscription", subscription),
        ):
            try:
                self._ask(service, method, message.SerializeToString())
            except grpc.RpcError as refusal:
                if refusal.code() not in {grpc.StatusCode.ALREADY_EXISTS, grpc.StatusCode.NOT_FOUND}:
                    raise

    def _ask(self, service: str, method: str, content: bytes) -> object:
        path, timeout_s = f"/{service}/{method}", 0.2 if method in _WAITING else 20.0
        if method != "StreamingPull":
            return self._channel.unary_unary(path)(content, timeout=timeout_s)
        return list(self._channel.stream_stream(path)(iter([content]), timeout=timeout_s))


# Any: the messages' classes exist at run time only.
def _fill(message: Any, random: Random, depth: int = 0) -> None:
    """About half of the fields, each with values of its type."""
    for field in message.DESCRIPTOR.fields:
        if field.name in _USUAL and not field.message_type and random.random() < 0.85:
            setattr(message, field.name, random.choice(_USUAL[field.name]))
            continue
        if random.random() < 0.4 or (depth == _MOST_DEPTH and field.message_type):
            continue
        if field.message_type and field.message_type.GetOptions().map_entry:
            found = getattr(message, field.name)
            for _ in range(random.choice((1, 1, 40))):
                if field.message_type.fields_by_name["value"].message_type is None:
                    found[_words(random)] = _words(random)
        elif field.is_repeated:
            for _ in range(random.choice((0, 1, 3))):
                if field.message_type:
                    _fill(getattr(message, field.name).add(), random, depth + 1)
                else:
                    getattr(message, field.name).append(_scalar(field, random))
        elif field.message_type:
            inside = getattr(message, field.name)
            inside.SetInParent()
            _fill(inside, random, depth + 1)
        else:
            setattr(message, field.name, _scalar(field, random))


def _scalar(field: FieldDescriptor, random: Random) -> Any:
    kinds = FieldDescriptor
    match field.cpp_type:
        case kinds.CPPTYPE_STRING:
            return _words(random).encode() if field.type == kinds.TYPE_BYTES else _words(random)
        case kinds.CPPTYPE_BOOL:
            return random.random() < 0.5
        case kinds.CPPTYPE_DOUBLE | kinds.CPPTYPE_FLOAT:
            return random.choice((0.0, -1.0, 1e308, float("nan"), float("inf")))
        case kinds.CPPTYPE_ENUM:
            return random.choice((0, 1, 2, 77))
        case kinds.CPPTYPE_UINT32 | kinds.CPPTYPE_UINT64:
            return random.choice((0, 1, 2**32 - 1))
    largest = 2**31 - 1 if field.cpp_type == kinds.CPPTYPE_INT32 else 2**63 - 1
    number = random.choice([each for each in NUMBERS if isinstance(each, int)] + [10, 60, 600])
    return max(-largest - 1, min(largest, number))


def _words(random: Random) -> str:
    found = random.choice(WORDS) if random.random() < 0.7 else text(random)
    return found.encode("utf-8", "ignore").decode()
