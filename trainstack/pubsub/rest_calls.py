"""Pub/Sub's calls over REST, with the HTTP rules from google/pubsub/v1/*.proto."""

import re
from typing import Any

from google.iam.v1 import iam_policy_pb2 as iam
from google.iam.v1 import policy_pb2
from google.pubsub_v1 import types

from trainstack.transcoding.method import Services, method_from

_PROJECT = "/v1/{project=projects/*}"
_TOPIC = "/v1/{topic=projects/*/topics/*}"
_SUBSCRIPTION = "/v1/{subscription=projects/*/subscriptions/*}"
_SCHEMA = "/v1/{name=projects/*/schemas/*}"
_SNAPSHOT = "/v1/{snapshot=projects/*/snapshots/*}"

_RULES = {
    "google.pubsub.v1.Publisher": {
        "CreateTopic": "PUT /v1/{name=projects/*/topics/*}",
        "GetTopic": f"GET {_TOPIC}",
        "ListTopics": f"GET {_PROJECT}/topics",
        "UpdateTopic": "PATCH /v1/{topic.name=projects/*/topics/*}",
        "DeleteTopic": f"DELETE {_TOPIC}",
        "Publish": f"POST {_TOPIC}:publish",
        "ListTopicSubscriptions": f"GET {_TOPIC}/subscriptions",
        "ListTopicSnapshots": f"GET {_TOPIC}/snapshots",
        "DetachSubscription": f"POST {_SUBSCRIPTION}:detach",
    },
    "google.pubsub.v1.Subscriber": {
        "CreateSubscription": "PUT /v1/{name=projects/*/subscriptions/*}",
        "GetSubscription": f"GET {_SUBSCRIPTION}",
        "ListSubscriptions": f"GET {_PROJECT}/subscriptions",
        "UpdateSubscription": "PATCH /v1/{subscription.name=projects/*/subscriptions/*}",
        "DeleteSubscription": f"DELETE {_SUBSCRIPTION}",
        "Pull": f"POST {_SUBSCRIPTION}:pull",
        "Acknowledge": f"POST {_SUBSCRIPTION}:acknowledge",
        "ModifyAckDeadline": f"POST {_SUBSCRIPTION}:modifyAckDeadline",
        "Seek": f"POST {_SUBSCRIPTION}:seek",
        "CreateSnapshot": "PUT /v1/{name=projects/*/snapshots/*}",
        "GetSnapshot": f"GET {_SNAPSHOT}",
        "ListSnapshots": f"GET {_PROJECT}/snapshots",
        "UpdateSnapshot": "PATCH /v1/{snapshot.name=projects/*/snapshots/*}",
        "DeleteSnapshot": f"DELETE {_SNAPSHOT}",
    },
    "google.pubsub.v1.SchemaService": {
        "CreateSchema": "POST /v1/{parent=projects/*}/schemas",
        "GetSchema": f"GET {_SCHEMA}",
        "ListSchemas": "GET /v1/{parent=projects/*}/schemas",
        "ListSchemaRevisions": f"GET {_SCHEMA}:listRevisions",
        "CommitSchema": f"POST {_SCHEMA}:commit",
        "RollbackSchema": f"POST {_SCHEMA}:rollback",
        "DeleteSchemaRevision": f"DELETE {_SCHEMA}:deleteRevision",
        "DeleteSchema": f"DELETE {_SCHEMA}",
        "ValidateSchema": "POST /v1/{parent=projects/*}/schemas:validate",
        "ValidateMessage": "POST /v1/{parent=projects/*}/schemas:validateMessage",
    },
}

_RESOURCE = re.compile(
    "(?:Create|Get|Update|Commit|Rollback)(Topic|Subscription|Snapshot|Schema)|Delete(Schema)Revision"
)
"""The methods whose response is a resource."""
_BODIES = {"CreateSchema": "schema"}


def services() -> Services:
    """The methods by service. Fields that are not in the path are in the body, if there is one and it is not one field."""
    return {
        service: [
            method_from(
                rule, name, *_types_of(name), body=_BODIES.get(name, "*" if rule.startswith("P") else "")
            )
            for name, rule in rules.items()
        ]
        for service, rules in _RULES.items()
    } | {
        "google.iam.v1.IAMPolicy": [
            method_from(
                f"{verb} /v1/{{resource=projects/*/{kind}/*}}:{path}", name, *_policy_types(name), body=body
            )
            for kind in ("topics", "subscriptions", "snapshots", "schemas")
            for verb, path, name, body in (
                ("GET", "getIamPolicy", "GetIamPolicy", ""),
                ("POST", "setIamPolicy", "SetIamPolicy", "*"),
                ("POST", "testIamPermissions", "TestIamPermissions", "*"),
            )
        ]
    }


def _policy_types(name: str) -> tuple[Any, Any]:
    return getattr(iam, f"{name}Request"), getattr(iam, f"{name}Response", policy_pb2.Policy)


def _types_of(name: str) -> tuple[Any, ...]:
    """The request of a method, and its response unless that is empty. A resource may be its own request to create it."""
    named = _RESOURCE.fullmatch(name)
    resource = getattr(types, named[1] or named[2]) if named else None
    request = getattr(types, f"{name}Request", resource)
    response = getattr(types, f"{name}Response", resource)
    return (request, response) if response else (request,)
