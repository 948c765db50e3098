"""Pub/Sub's REST calls that gcloud makes, with the HTTP rules from google/pubsub/v1/pubsub.proto."""

from google.protobuf import empty_pb2
from google.pubsub_v1 import types

from trainstack.transcoding import Method
from trainstack.transcoding.method import Services

_TOPIC = "/v1/{topic=projects/*/topics/*}"
_SUBSCRIPTION = "/v1/{subscription=projects/*/subscriptions/*}"

_PUBLISHER = (
    ("CreateTopic", types.Topic, types.Topic, "PUT /v1/{name=projects/*/topics/*}"),
    ("GetTopic", types.GetTopicRequest, types.Topic, f"GET {_TOPIC}"),
    ("ListTopics", types.ListTopicsRequest, types.ListTopicsResponse, "GET /v1/{project=projects/*}/topics"),
    ("DeleteTopic", types.DeleteTopicRequest, None, f"DELETE {_TOPIC}"),
    ("Publish", types.PublishRequest, types.PublishResponse, f"POST {_TOPIC}:publish"),
    (
        "ListTopicSubscriptions",
        types.ListTopicSubscriptionsRequest,
        types.ListTopicSubscriptionsResponse,
        f"GET {_TOPIC}/subscriptions",
    ),
)
_SUBSCRIBER = (
    (
        "CreateSubscription",
        types.Subscription,
        types.Subscription,
        "PUT /v1/{name=projects/*/subscriptions/*}",
    ),
    ("GetSubscription", types.GetSubscriptionRequest, types.Subscription, f"GET {_SUBSCRIPTION}"),
    (
        "ListSubscriptions",
        types.ListSubscriptionsRequest,
        types.ListSubscriptionsResponse,
        "GET /v1/{project=projects/*}/subscriptions",
    ),
    ("DeleteSubscription", types.DeleteSubscriptionRequest, None, f"DELETE {_SUBSCRIPTION}"),
    ("Pull", types.PullRequest, types.PullResponse, f"POST {_SUBSCRIPTION}:pull"),
    ("Acknowledge", types.AcknowledgeRequest, None, f"POST {_SUBSCRIPTION}:acknowledge"),
    ("ModifyAckDeadline", types.ModifyAckDeadlineRequest, None, f"POST {_SUBSCRIPTION}:modifyAckDeadline"),
)


def services() -> Services:
    """The methods by service."""
    return {
        "google.pubsub.v1.Publisher": [_method(*row) for row in _PUBLISHER],
        "google.pubsub.v1.Subscriber": [_method(*row) for row in _SUBSCRIBER],
    }


def _method(name: str, request: type, response: type | None, rule: str) -> Method:
    """Fields that are not in the path are in the body, if there is one."""
    verb, _, path = rule.partition(" ")
    return Method(
        name=name,
        request=request.pb(),  # type: ignore[attr-defined]  # proto-plus
        response=response.pb() if response else empty_pb2.Empty,  # type: ignore[attr-defined]
        verb=verb,
        path=path,
        body="*" if verb in ("PUT", "POST") else "",
    )
