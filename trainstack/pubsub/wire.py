"""The plain protobuf classes of the Pub/Sub API.

The official client library wraps them for convenience, at five to eight times the cost per message. A server
that handles thousands of messages a second uses the plain classes. Their fields exist at run time only and no
stubs are published, so each class, and every message made by one, is Any.
"""

import re
from typing import Any, TypeAlias

from google.iam.v1 import iam_policy_pb2 as iam
from google.iam.v1 import policy_pb2
from google.protobuf.empty_pb2 import Empty
from google.pubsub_v1 import types

Message: TypeAlias = Any
MessageClass: TypeAlias = Any


def __getattr__(name: str) -> MessageClass:
    """The class of a message by its name."""
    message = globals()[name] = getattr(types, name).pb()
    return message


_RESOURCE = re.compile(
    "(?:Create|Get|Update|Commit|Rollback)(Topic|Subscription|Snapshot|Schema)|Delete(Schema)Revision"
)
"""The methods whose response is a resource, which may be the request to create it."""


def types_of(method: str) -> tuple[MessageClass, MessageClass]:
    """The classes of a method's request and response."""
    if "Iam" in method:
        return getattr(iam, f"{method}Request"), getattr(iam, f"{method}Response", policy_pb2.Policy)
    named = _RESOURCE.fullmatch(method)
    resource = named and getattr(types, named[1] or named[2]).pb()
    request, response = (getattr(types, f"{method}{suffix}", None) for suffix in ("Request", "Response"))
    return request.pb() if request else resource, response.pb() if response else resource or Empty
