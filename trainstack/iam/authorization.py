"""Authorization in front of every service: which permissions a method requires, and whether the caller has them.

A method that is not in `REQUIRED` is refused to every caller but the project's owner.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from trainstack.iam.principals import Principal, caller
from trainstack.iam.service import BUCKETS, Grants

NOTHING: tuple[tuple[str, str], ...] = ()
_CONSUME = (("pubsub.subscriptions.consume", "subscription"),)

# Storage: https://cloud.google.com/storage/docs/access-control/iam-json (its "None" is NOTHING here)
# Pub/Sub: https://cloud.google.com/pubsub/docs/access-control
# Vertex AI: https://cloud.google.com/vertex-ai/docs/general/iam-permissions
# Logging: https://cloud.google.com/logging/docs/access-control
# Monitoring: https://cloud.google.com/monitoring/access-control
# Resource Manager: https://cloud.google.com/resource-manager/docs/access-control-proj
REQUIRED: Mapping[str, tuple[tuple[str, str], ...]] = {
    "storage.batch": NOTHING,  # each of its requests has its own
    **{
        f"storage.{prefix}AccessControls.{verb}": tuple(
            (f"storage.{kind}s.{need}", kind) for need in needs.split()
        )
        for prefix, kind in (("bucket", "bucket"), ("defaultObject", "bucket"), ("object", "object"))
        for verbs, needs in (
            ("get list", "get getIamPolicy"),
            ("insert patch update delete", "get getIamPolicy setIamPolicy update"),
        )
        for verb in verbs.split()
    },
    "storage.buckets.delete": (("storage.buckets.delete", "bucket"),),
    "storage.buckets.get": (("storage.buckets.get", "bucket"),),
    "storage.buckets.getIamPolicy": (("storage.buckets.getIamPolicy", "bucket"),),
    "storage.buckets.getStorageLayout": (("storage.objects.list", "prefix"),),
    "storage.buckets.insert": (("storage.buckets.create", "project"),),
    "storage.buckets.list": (("storage.buckets.list", "project"),),
    "storage.buckets.lockRetentionPolicy": (("storage.buckets.update", "bucket"),),
    "storage.buckets.patch": (("storage.buckets.update", "bucket"),),
    "storage.buckets.setIamPolicy": (("storage.buckets.setIamPolicy", "bucket"),),
    "storage.buckets.testIamPermissions": NOTHING,
    "storage.buckets.update": (("storage.buckets.update", "bucket"),),
    "storage.managedFolders.getIamPolicy": (("storage.managedFolders.getIamPolicy", "bucket"),),
    "storage.managedFolders.list": (("storage.managedFolders.list", "prefix"),),
    "storage.managedFolders.testIamPermissions": NOTHING,
    "storage.notifications.delete": (("storage.buckets.update", "bucket"),),
    "storage.notifications.get": (("storage.buckets.get", "bucket"),),
    "storage.notifications.insert": (("storage.buckets.update", "bucket"),),
    "storage.notifications.list": (("storage.buckets.get", "bucket"),),
    # An upload session's URI is the authorization to send to it and to cancel it; the methods themselves authorize an
    # insertion, whose object may be named in the body, and the sources of a composition, which are:
    # https://cloud.google.com/storage/docs/resumable-uploads#session-uris
    "storage.objects.cancelUpload": NOTHING,
    "storage.objects.compose": (("storage.objects.create", "object"),),
    "storage.objects.copy": (("storage.objects.get", "object"), ("storage.objects.create", "to_object")),
    "storage.objects.delete": (("storage.objects.delete", "object"),),
    "storage.objects.get": (("storage.objects.get", "object"),),
    "storage.objects.insert": NOTHING,
    "storage.objects.list": (("storage.objects.list", "prefix"),),
    "storage.objects.move": (("storage.objects.move", "object"), ("storage.objects.create", "to_object")),
    "storage.objects.restore": (("storage.objects.restore", "object"), ("storage.objects.create", "object")),
    "storage.objects.update": (("storage.objects.update", "object"),),
    "storage.objects.patch": (("storage.objects.update", "object"),),
    "storage.objects.rewrite": (("storage.objects.get", "object"), ("storage.objects.create", "to_object")),
    "storage.projects.serviceAccount.get": (("resourcemanager.projects.get", "project"),),
    "pubsub.acknowledge": _CONSUME,
    "pubsub.createSubscription": (
        ("pubsub.subscriptions.create", "project"),
        ("pubsub.topics.attachSubscription", "topic"),
    ),
    "pubsub.createSnapshot": (("pubsub.snapshots.create", "project"), *_CONSUME),
    "pubsub.createTopic": (("pubsub.topics.create", "project"),),
    "pubsub.deleteSnapshot": (("pubsub.snapshots.delete", "snapshot"),),
    "pubsub.deleteSubscription": (("pubsub.subscriptions.delete", "subscription"),),
    "pubsub.deleteTopic": (("pubsub.topics.delete", "topic"),),
    "pubsub.detachSubscription": (("pubsub.topics.detachSubscription", "subscription"),),
    # IAM's methods are authorized by the kind of their resource; the caller itself may always ask what it may do.
    **dict.fromkeys(("pubsub.getIamPolicy", "pubsub.setIamPolicy", "pubsub.testIamPermissions"), NOTHING),
    "pubsub.getSnapshot": (("pubsub.snapshots.get", "snapshot"),),
    "pubsub.getSubscription": (("pubsub.subscriptions.get", "subscription"),),
    "pubsub.getTopic": (("pubsub.topics.get", "topic"),),
    "pubsub.listSnapshots": (("pubsub.snapshots.list", "project"),),
    "pubsub.listSubscriptions": (("pubsub.subscriptions.list", "project"),),
    "pubsub.listTopicSubscriptions": (("pubsub.topics.get", "topic"),),
    "pubsub.listTopicSnapshots": (("pubsub.topics.get", "topic"),),
    "pubsub.listTopics": (("pubsub.topics.list", "project"),),
    "pubsub.modifyAckDeadline": _CONSUME,
    "pubsub.publish": (("pubsub.topics.publish", "topic"),),
    "pubsub.pull": _CONSUME,
    "pubsub.seek": _CONSUME,
    **{
        f"pubsub.{verb}Schema": ((f"pubsub.schemas.{verb}", "schema"),)
        for verb in ("commit", "delete", "get", "rollback")
    },
    "pubsub.createSchema": (("pubsub.schemas.create", "project"),),
    "pubsub.deleteSchemaRevision": (("pubsub.schemas.delete", "schema"),),
    "pubsub.listSchemaRevisions": (("pubsub.schemas.listRevisions", "schema"),),
    "pubsub.listSchemas": (("pubsub.schemas.list", "project"),),
    **dict.fromkeys(
        ("pubsub.validateMessage", "pubsub.validateSchema"), (("pubsub.schemas.validate", "project"),)
    ),
    "pubsub.streamingPull": _CONSUME,
    "pubsub.updateSnapshot": (("pubsub.snapshots.update", "snapshot"),),
    "pubsub.updateSubscription": (("pubsub.subscriptions.update", "subscription"),),
    "pubsub.updateTopic": (("pubsub.topics.update", "topic"),),
    # Creating a job also requires iam.serviceAccounts.actAs on the account that it names; see `may_act_as`.
    **{
        f"vertex.{jobs}.{method}": ((f"aiplatform.{jobs}.{method}", "project"),)
        for jobs in ("customJobs", "hyperparameterTuningJobs")
        for method in ("cancel", "create", "delete", "get", "list")
    },
    # By the path's last collection. The page names no permissions for versions and aliases; theirs are ours.
    **{
        f"vertex.{collection}.{method}": ((f"aiplatform.{kind or collection}.{method}", "project"),)
        for collection, kind, methods in (
            ("persistentResources", "", "create get list update delete"),
            ("trainingPipelines", "", "create get list cancel delete"),
            ("models", "", "upload get list update delete"),
            ("endpoints", "", "create get list update delete"),
            ("metadataStores", "", "create get list delete"),
            ("contexts", "", "create get list update delete queryContextLineageSubgraph"),
            ("contexts", "", "addContextArtifactsAndExecutions addContextChildren"),
            ("executions", "", "create get list update delete"),
            ("executions", "", "addExecutionEvents queryExecutionInputsAndOutputs"),
            ("artifacts", "", "create get list update delete"),
            ("tensorboards", "", "create get list delete"),
            ("experiments", "tensorboardExperiments", "create get list delete"),
            ("runs", "tensorboardRuns", "create get list delete"),
            ("timeSeries", "tensorboardTimeSeries", "list"),
        )
        for method in methods.split()
    },
    # Of an upload, the permission is that to get its model, as the page says; for those of other resources it is ours.
    "vertex.operations.get": (("aiplatform.operations.get", "project"),),
    "vertex.operations.list": (("aiplatform.operations.list", "project"),),
    "vertex.operations.wait": (("aiplatform.operations.get", "project"),),
    "vertex.models.listVersions": (("aiplatform.models.list", "project"),),
    "vertex.models.mergeVersionAliases": (("aiplatform.models.update", "project"),),
    "vertex.models.deleteVersion": (("aiplatform.models.delete", "project"),),
    "vertex.endpoints.deployModel": (("aiplatform.endpoints.deploy", "project"),),
    "vertex.endpoints.undeployModel": (("aiplatform.endpoints.undeploy", "project"),),
    "logging.entries.list": (("logging.logEntries.list", "project"),),
    "logging.entries.write": (("logging.logEntries.create", "project"),),
    "logging.logs.delete": (("logging.logs.delete", "project"),),
    "logging.logs.list": (("logging.logs.list", "project"),),
    **{
        f"logging.{kind}.{method}": ((f"logging.{permissions}.{method}", "project"),)
        for kind, permissions in (("sinks", "sinks"), ("metrics", "logMetrics"))
        for method in ("create", "delete", "get", "list", "update")
    },
    "monitoring.timeSeries.list": (("monitoring.timeSeries.list", "project"),),
    "iam.serviceAccounts.get": (("iam.serviceAccounts.get", "account"),),
    "iam.serviceAccounts.list": (("iam.serviceAccounts.list", "project"),),
    "cloudresourcemanager.projects.get": (("resourcemanager.projects.get", "project"),),
}
"""The permissions of each method, each with the resource that it is required on."""


@dataclass(frozen=True, kw_only=True)
class Resource:
    """A resource by its full name; `object_name` is an object in a bucket, or the prefix of several."""

    name: str
    object_name: str | None = None


class DeniedError(Exception):
    """The caller lacks a permission; `permission` is empty for a method that only the owner may call."""

    def __init__(self, permission: str, resource: Resource, principal: Principal) -> None:
        super().__init__(denial(permission))
        self.permission, self.resource, self.principal = permission, resource, principal


def denial(permission: str) -> str:
    """The sentence that most services' refusals consist of or end with."""
    if not permission:
        return "Only the project's owner may call this method of the local stack."
    return f"Permission '{permission}' denied on resource (or it may not exist)."


def permission_info(permission: str, *, domain: str, **metadata: str) -> dict[str, object]:
    """The detail that newer services add to a refusal: https://cloud.google.com/apis/design/errors#error_info"""
    return {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": "IAM_PERMISSION_DENIED",
        "domain": domain,
        "metadata": {**metadata, "permission": permission},
    }


def authorize(
    grants: Grants | None,
    method: str,
    resources: Mapping[str, Resource],
    is_listed: Callable[[str, Resource], bool] = lambda _permission, _resource: False,
) -> None:
    """Return if the caller may call the method; always for the project's owner, or without enforced grants.

    Args: grants: who has which role; None for a service that runs alone. method: its name in `REQUIRED`.
    resources: those of the call, by their kinds in `REQUIRED`; a missing one is not granted to anyone.
    is_listed: whether the caller has a permission by a resource's own list, which is asked when no grant gives it.

    Raises:
        DeniedError: the caller lacks a permission.
    """
    if is_unrestricted(grants):
        return
    if method not in REQUIRED:
        raise DeniedError("", Resource(name=""), caller())
    for permission, kind in REQUIRED[method]:
        resource = resources.get(kind, Resource(name=""))
        if not has(grants, permission, resource) and not is_listed(permission, resource):
            raise DeniedError(permission, resource, caller())


def is_unrestricted(grants: Grants | None) -> bool:
    """Whether the caller needs no permission. An anonymous one always does."""
    if caller().kind == "anonymous":
        return False
    return grants is None or not grants.enforced or not caller().member


def require(grants: Grants | None, permission: str, resource: Resource) -> None:
    """Raises `DeniedError` unless the caller has the permission."""
    if not has(grants, permission, resource):
        raise DeniedError(permission, resource, caller())


def has(grants: Grants | None, permission: str, resource: Resource) -> bool:
    """Whether the caller has the permission, or needs none."""
    if is_unrestricted(grants):
        return True
    return grants is not None and grants.allows(
        caller().member, permission, resource.name, resource.object_name
    )


def may_act_as(grants: Grants | None, email: str) -> bool:
    """Whether the caller may create a job that runs as this service account; empty for one that names none."""
    if not email or grants is None:
        return True
    return has(grants, "iam.serviceAccounts.actAs", account_of(grants, email))


def unknown_permissions(grants: Grants, permissions: Iterable[str]) -> list[str]:
    """Those that neither a method of the stack requires nor a role has, as far as its permissions are known."""
    required = {permission for needs in REQUIRED.values() for permission, _ in needs}
    return [name for name in permissions if name not in required and not grants.has_permission(name)]


def bucket_of(name: str, object_name: str | None = None) -> Resource:
    return Resource(name=BUCKETS + name, object_name=object_name)


def project_of(grants: Grants | None, project: str) -> Resource:
    """A project by its id or number."""
    is_number = grants is not None and project == grants.project_number
    return Resource(name=f"projects/{grants.project if grants and is_number else project}")


def account_of(grants: Grants, email: str) -> Resource:
    return Resource(name=f"projects/{grants.project}/serviceAccounts/{email}")
