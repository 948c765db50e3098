"""The arguments of Terraform's Google provider, from the source of Pulumi's package, which is made from its schema.

Pulumi names lists in the plural, and a resource's `name` is optional there: Pulumi makes one up. Fields that only
google-beta has are in it too.
"""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

RESOURCES: Mapping[str, str] = {
    "google_artifact_registry_repository": "artifactregistry.Repository",
    "google_cloud_run_v2_service": "cloudrunv2.Service",
    "google_cloud_run_v2_service_iam_member": "cloudrunv2.ServiceIamMember",
    "google_cloud_scheduler_job": "cloudscheduler.Job",
    "google_cloudfunctions2_function": "cloudfunctionsv2.Function",
    "google_eventarc_trigger": "eventarc.Trigger",
    "google_iam_workload_identity_pool": "iam.WorkloadIdentityPool",
    "google_iam_workload_identity_pool_provider": "iam.WorkloadIdentityPoolProvider",
    "google_iap_web_cloud_run_service_iam_member": "iap.WebCloudRunServiceIamMember",
    "google_kms_crypto_key_iam_member": "kms.CryptoKeyIAMMember",
    "google_logging_metric": "logging.Metric",
    "google_logging_project_sink": "logging.ProjectSink",
    "google_monitoring_alert_policy": "monitoring.AlertPolicy",
    "google_monitoring_dashboard": "monitoring.Dashboard",
    "google_monitoring_notification_channel": "monitoring.NotificationChannel",
    "google_project_iam_custom_role": "projects.IAMCustomRole",
    "google_project_iam_member": "projects.IAMMember",
    "google_project_service": "projects.Service",
    "google_project_service_identity": "projects.ServiceIdentity",
    "google_pubsub_subscription": "pubsub.Subscription",
    "google_pubsub_subscription_iam_member": "pubsub.SubscriptionIAMMember",
    "google_pubsub_topic": "pubsub.Topic",
    "google_pubsub_topic_iam_member": "pubsub.TopicIAMMember",
    "google_secret_manager_secret_iam_member": "secretmanager.SecretIamMember",
    "google_service_account": "serviceaccount.Account",
    "google_service_account_iam_member": "serviceaccount.IAMMember",
    "google_storage_bucket": "storage.Bucket",
    "google_storage_bucket_iam_member": "storage.BucketIAMMember",
    "google_storage_bucket_object": "storage.BucketObject",
    "google_storage_managed_folder": "storage.ManagedFolder",
    "google_storage_managed_folder_iam_member": "storage.ManagedFolderIamMember",
    "data.google_project": "organizations.get_project",
    "data.google_pubsub_subscription": "pubsub.get_subscription",
    "data.google_pubsub_topic": "pubsub.get_topic",
    "data.google_storage_project_service_account": "storage.get_project_service_account",
}
"""Pulumi's class of each resource that the configuration uses, and its function of each data source."""


def schema_of(package: Path, name: str) -> dict[str, Any]:
    """The arguments of `module.Class` or `module.get_something`, nested blocks inside.

    Each has `required`, `list` for more than one value, and `block` for those of a nested block.
    """
    module, _, word = name.partition(".")
    classes = dict(_definitions(package / module))
    definition = classes[word if word.startswith("get_") else f"{word}Args"]
    return dict(_arguments(definition, classes))


def _definitions(folder: Path) -> Iterator[tuple[str, ast.AST]]:
    for path in sorted(folder.glob("*.py")):
        if path.name != "outputs.py":
            for node in ast.parse(path.read_text()).body:
                if isinstance(node, ast.ClassDef | ast.FunctionDef):
                    yield node.name, node


def _arguments(definition: ast.AST, classes: Mapping[str, ast.AST]) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(definition, ast.ClassDef):
        (definition,) = [
            each for each in definition.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"
        ]
    assert isinstance(definition, ast.FunctionDef)
    taken = definition.args
    defaults = [*[None] * (len(taken.args) - len(taken.defaults)), *taken.defaults, *taken.kw_defaults]
    for argument, default in zip([*taken.args, *taken.kwonlyargs], defaults, strict=True):
        if argument.arg not in ("__self__", "opts"):
            yield argument.arg, _argument(argument.annotation, classes, required=default is None)


def _argument(
    annotation: ast.expr | None, classes: Mapping[str, ast.AST], *, required: bool
) -> dict[str, Any]:
    names = [
        node.value if isinstance(node, ast.Constant) else node.id
        for node in ast.walk(annotation or ast.Constant(None))
        if isinstance(node, ast.Constant | ast.Name)
    ]
    blocks = [name for name in names if isinstance(name, str) and name.endswith("Args") and name in classes]
    found: dict[str, Any] = {"required": True} if required else {}
    if "Sequence" in names:
        found["list"] = True
    if blocks:
        found["block"] = dict(_arguments(classes[blocks[0]], classes))
    return found
