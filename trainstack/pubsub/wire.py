"""The plain protobuf classes of the Pub/Sub API.

The official client library wraps them for convenience, at five to eight times the cost per message. A server
that handles thousands of messages a second uses the plain classes. Their fields exist at run time only and no
stubs are published, so each class, and every message made by one, is Any.
"""

from typing import Any, TypeAlias

from google.pubsub_v1 import types

Message: TypeAlias = Any
MessageClass: TypeAlias = Any


def _plain(name: str) -> MessageClass:
    return getattr(types, name).pb()


Topic = _plain("Topic")
Subscription = _plain("Subscription")
PubsubMessage = _plain("PubsubMessage")
ReceivedMessage = _plain("ReceivedMessage")
PublishResponse = _plain("PublishResponse")
PullResponse = _plain("PullResponse")
ListTopicsResponse = _plain("ListTopicsResponse")
ListTopicSubscriptionsResponse = _plain("ListTopicSubscriptionsResponse")
ListSubscriptionsResponse = _plain("ListSubscriptionsResponse")
StreamingPullResponse = _plain("StreamingPullResponse")


def request_class(method: str) -> MessageClass:
    """The class of `{method}Request`."""
    return _plain(f"{method}Request")
