"""IAM policies of topics, subscriptions, snapshots and schemas. They decide what accounts may do, at once.

Sources: https://cloud.google.com/pubsub/docs/access-control,
https://cloud.google.com/iam/docs/reference/rest/v1/Policy
"""

import hashlib

from google.iam.v1 import iam_policy_pb2, policy_pb2
from google.protobuf.json_format import ParseDict

from trainstack.errors import ApiError, InvalidArgumentError, Status
from trainstack.iam.authorization import REQUIRED, Resource, require
from trainstack.iam.principals import caller
from trainstack.iam.service import Grants, roles_from
from trainstack.pubsub import wire
from trainstack.pubsub.checks import names
from trainstack.pubsub.errors import ResourceNotFound
from trainstack.pubsub.service import PubsubService

_PERMISSIONS = {permission for required in REQUIRED.values() for permission, _ in required}
_PATTERNS = {
    "publisher": ["topics.publish"],
    "subscriber": ["subscriptions.consume", "topics.attachSubscription"],
    "viewer": ["*.get", "*.list", "schemas.listRevisions", "schemas.validate"],
    "editor": ["*"],
}
ROLES = roles_from("pubsub", _PERMISSIONS, _PATTERNS)
"""The permissions of Pub/Sub's own roles, as far as a method here requires them."""


def get_policy(service: PubsubService, request: wire.Message) -> wire.Message:
    _check(service, request.resource, "getIamPolicy")
    return policy_of(service, request.resource)


def set_policy(service: PubsubService, request: wire.Message) -> wire.Message:
    _check(service, request.resource, "setIamPolicy")
    if request.policy.etag not in (b"", policy_of(service, request.resource).etag):
        raise ApiError(
            Status.ABORTED, "There were concurrent policy changes. Please retry the whole read-modify-write."
        )
    _check_bindings(request.policy, service.grants)
    kept = policy_pb2.Policy(version=1, bindings=request.policy.bindings)
    service.store.put("policies", request.resource, kept.SerializeToString())
    apply_policy(service, request.resource, kept)
    return policy_of(service, request.resource)


def test_permissions(service: PubsubService, request: wire.Message) -> wire.Message:
    """All of them, unless a stack has grants; none of a resource that does not exist."""
    if wild := [one for one in request.permissions if "*" in one]:
        raise InvalidArgumentError(f"Permissions with wildcards are not allowed: {', '.join(wild)}.")
    granted = list(request.permissions) if service.has(request.resource) else []
    if service.grants:
        granted = service.grants.permitted(caller().member, granted, request.resource)
    return iam_policy_pb2.TestIamPermissionsResponse(permissions=granted)


def _check(service: PubsubService, resource: str, method: str) -> None:
    """Raises `DeniedError`, or `ResourceNotFound`."""
    kind = f"/{resource}".split("/")[-2]
    require(service.grants, f"pubsub.{kind}.{method}", Resource(name=resource))
    if not service.has(resource):
        raise ResourceNotFound(names.id_of(resource))


def policy_of(service: PubsubService, resource: str) -> wire.Message:
    """The resource's policy: what was set, or the deployment's grants on it by its name."""
    stored, grants = service.store.resources("policies").get(resource), service.grants
    policy = policy_pb2.Policy.FromString(stored or b"")
    if stored is None and grants and any(one.resource == resource for one in grants.granted):
        policy = ParseDict({**grants.policy(resource), "etag": ""}, policy_pb2.Policy())
    policy.etag = hashlib.sha256(policy.SerializeToString(deterministic=True)).digest()[:8]
    return policy


def apply_policy(service: PubsubService, resource: str, policy: wire.Message) -> None:
    """Let the policy decide, if a stack has grants."""
    if service.grants:
        service.grants.set_policy(resource, [(one.role, one.members) for one in policy.bindings], ROLES)


def apply_policies(service: PubsubService) -> None:
    """Let every policy that was set decide."""
    for name, body in service.store.resources("policies").items():
        apply_policy(service, name, policy_pb2.Policy.FromString(body))


def _check_bindings(policy: wire.Message, grants: Grants | None) -> None:
    """Raises `ApiError`: Unimplemented for what would decide something in the cloud, and would not here."""
    known = {*ROLES, *(grants.roles if grants else ())}
    for binding in policy.bindings:
        if binding.HasField("condition"):
            raise ApiError(
                Status.UNIMPLEMENTED,
                "Conditions in IAM policies are not imitated; grant the role without one.",
            )
        for member in binding.members:
            if member.startswith("all") or (
                member.startswith("serviceAccount:") and binding.role not in known
            ):
                raise ApiError(
                    Status.UNIMPLEMENTED,
                    f"{binding.role} for {member} is not imitated; grant a role of Pub/Sub to an account.",
                )
