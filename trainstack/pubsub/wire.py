"""The plain protobuf classes of the Pub/Sub API.

The official client library wraps them for convenience, at five to eight times the cost per message. A server
that handles thousands of messages a second uses the plain classes. Their fields exist at run time only and no
stubs are published, so each class, and every message made by one, is Any.
"""

from typing import Any, TypeAlias

from google.pubsub_v1 import types

Message: TypeAlias = Any
MessageClass: TypeAlias = Any


def plain(name: str) -> MessageClass:
    """The class of a message by its name."""
    return getattr(types, name).pb()


Topic = plain("Topic")
Subscription = plain("Subscription")
PubsubMessage = plain("PubsubMessage")
ReceivedMessage = plain("ReceivedMessage")
PublishResponse = plain("PublishResponse")
PullResponse = plain("PullResponse")
ListTopicsResponse = plain("ListTopicsResponse")
ListTopicSubscriptionsResponse = plain("ListTopicSubscriptionsResponse")
ListSubscriptionsResponse = plain("ListSubscriptionsResponse")
StreamingPullResponse = plain("StreamingPullResponse")


def request_class(method: str) -> MessageClass:
    """The class of `{method}Request`."""
    return plain(f"{method}Request")
