"""The IAMPolicy service: policies are kept and given back, and enforced nowhere.

Set-up scripts grant roles on topics (a log sink's writer, a bucket's service agent); here the grant is recorded
so that a later look finds it. Permissions are answered as the project's owner has them: nobody's token is read.
"""

from typing import Any

from google.iam.v1 import iam_policy_pb2, policy_pb2

from trainmaster.local.pubsub import wire
from trainmaster.local.pubsub.broker import Broker

# Generated protobuf modules without stubs: their members are Any.
_iam: Any = iam_policy_pb2
_policy: Any = policy_pb2

REQUESTS = {
    "SetIamPolicy": _iam.SetIamPolicyRequest,
    "GetIamPolicy": _iam.GetIamPolicyRequest,
    "TestIamPermissions": _iam.TestIamPermissionsRequest,
}


class IamPolicy:
    """`google.iam.v1.IAMPolicy` over topics and subscriptions."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def SetIamPolicy(self, request: wire.Message, _remaining_s: float) -> wire.Message:
        self._check(request.resource)
        policy = request.policy
        policy.etag = policy.etag or b"ACAB"
        self._broker.store.put_policy(request.resource, policy.SerializeToString())
        return policy

    async def GetIamPolicy(self, request: wire.Message, _remaining_s: float) -> wire.Message:
        self._check(request.resource)
        return _policy.Policy.FromString(self._broker.store.policy(request.resource))

    async def TestIamPermissions(self, request: wire.Message, _remaining_s: float) -> wire.Message:
        self._check(request.resource)
        asked = list(request.permissions)
        grants = self._broker.grants
        held = grants.permitted("", asked, request.resource) if grants else asked
        return _iam.TestIamPermissionsResponse(permissions=held)

    def _check(self, resource: str) -> None:
        if "/topics/" in resource:
            self._broker.topic(resource)
        else:
            self._broker.subscription(resource)
