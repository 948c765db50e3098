"""Pub/Sub's REST calls that gcloud makes, with the HTTP rules from google/pubsub/v1/pubsub.proto."""

from typing import Any

from google.pubsub_v1 import types

from trainstack.transcoding.method import Services, method_from

_TOPIC = "/v1/{topic=projects/*/topics/*}"
_SUBSCRIPTION = "/v1/{subscription=projects/*/subscriptions/*}"

_RULES = {
    "google.pubsub.v1.Publisher": {
        "CreateTopic": "PUT /v1/{name=projects/*/topics/*}",
        "GetTopic": f"GET {_TOPIC}",
        "ListTopics": "GET /v1/{project=projects/*}/topics",
        "DeleteTopic": f"DELETE {_TOPIC}",
        "Publish": f"POST {_TOPIC}:publish",
        "ListTopicSubscriptions": f"GET {_TOPIC}/subscriptions",
    },
    "google.pubsub.v1.Subscriber": {
        "CreateSubscription": "PUT /v1/{name=projects/*/subscriptions/*}",
        "GetSubscription": f"GET {_SUBSCRIPTION}",
        "ListSubscriptions": "GET /v1/{project=projects/*}/subscriptions",
        "DeleteSubscription": f"DELETE {_SUBSCRIPTION}",
        "Pull": f"POST {_SUBSCRIPTION}:pull",
        "Acknowledge": f"POST {_SUBSCRIPTION}:acknowledge",
        "ModifyAckDeadline": f"POST {_SUBSCRIPTION}:modifyAckDeadline",
    },
}


def services() -> Services:
    """The methods by service. Fields that are not in the path are in the body, if there is one."""
    return {
        service: [
            method_from(rule, name, *_types_of(name), body="*" if rule.startswith("P") else "")
            for name, rule in rules.items()
        ]
        for service, rules in _RULES.items()
    }


def _types_of(name: str) -> tuple[Any, ...]:
    """The request of a method, and its response unless that is empty. A resource is its own request to create it."""
    resource = getattr(types, name.removeprefix("Create").removeprefix("Get"), None)
    request = getattr(types, f"{name}Request", resource)
    response = getattr(types, f"{name}Response", resource)
    return (request, response) if response else (request,)
