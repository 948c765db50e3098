"""Google's discovery documents without what no judge reads: prose, and methods of which we call and imitate none."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

_JOBS = ("projects.locations.customJobs.", "projects.locations.hyperparameterTuningJobs.")
_RESOURCES = tuple(
    f"projects.locations.{name}"
    for name in (
        "trainingPipelines.", "models.upload", "models.get", "models.list", "models.patch", "models.delete", "models.merge",
        *(f"endpoints.{verb}" for verb in ("create", "get", "list", "patch", "delete", "deployModel", "undeployModel")),
        "metadataStores.", "tensorboards.", "persistentResources.",
    )
)  # fmt: skip
METHODS: Mapping[str, tuple[str, ...]] = {
    "aiplatform.v1": (*_JOBS, *_RESOURCES),
    "aiplatform.v1beta1": _JOBS,
    "artifactregistry.v1": ("projects.locations.repositories.create", "projects.locations.repositories.list"),
    "cloudbilling.v1": ("projects.",),
    "cloudbuild.v1": ("projects.builds.create", "projects.locations.getDefaultServiceAccount"),
    "cloudfunctions.v2": (
        "projects.locations.functions.",
        "projects.locations.operations.",
        "projects.locations.runtimes.",
    ),
    "cloudkms.v1": (
        "projects.locations.keyRings.cryptoKeys.get",
        "projects.locations.keyRings.cryptoKeys.getIamPolicy",
        "projects.locations.keyRings.cryptoKeys.setIamPolicy",
    ),
    "cloudresourcemanager.v1": ("projects.",),
    "cloudscheduler.v1": ("projects.locations.jobs.",),
    "eventarc.v1": ("projects.locations.triggers.",),
    "iam.v1": (
        "projects.roles.",
        "projects.serviceAccounts.",
        "projects.locations.workloadIdentityPools.create",
        "projects.locations.workloadIdentityPools.list",
        "projects.locations.workloadIdentityPools.providers.create",
        "projects.locations.workloadIdentityPools.providers.list",
    ),
    "iamcredentials.v1": ("projects.serviceAccounts.",),
    "logging.v2": ("entries.", "projects.logs.", "projects.sinks.", "projects.metrics."),
    "monitoring.v1": ("projects.dashboards.",),
    "monitoring.v3": (
        "projects.alertPolicies.",
        "projects.notificationChannels.",
        "projects.timeSeries.list",
    ),
    "pubsub.v1": ("projects.",),
    "run.v1": ("namespaces.services.",),
    "run.v2": ("projects.locations.services.",),
    "secretmanager.v1": ("projects.secrets.getIamPolicy", "projects.secrets.versions.get"),
    "serviceusage.v1": ("services.", "operations."),
    "storage.v1": (
        *(
            "bucketAccessControls.",
            "buckets.",
            "defaultObjectAccessControls.",
            "managedFolders.",
            "notifications.",
        ),
        *("objectAccessControls.", "objects.", "projects."),
    ),
}
"""The methods that are kept of each API, by the beginnings of their names, with the schemas that they reach."""

ROUTED = (
    "aiplatform.v1", "cloudresourcemanager.v1", "cloudresourcemanager.v3", "iam.v1", "iamcredentials.v1", "logging.v2",
    "pubsub.v1", "storage.v1",
)  # fmt: skip
"""The APIs of which the stack serves some methods; every method's verb and path is kept."""

_REQUIRED = re.compile(r"((Immutable|Input only|Identifier)\. )*Required\.", re.IGNORECASE)
_OF_A_VALUE = (
    "$ref", "type", "format", "enum", "items", "additionalProperties", "properties", "readOnly", "repeated",
    "location",
)  # fmt: skip


def trimmed(document: Mapping[str, Any], beginnings: tuple[str, ...]) -> dict[str, Any]:
    """The document's methods of these names and the schemas that they reach, without prose.

    A property that the prose calls required, or that annotations require for some methods, has `required`.
    """
    found = {
        method["id"].partition(".")[2]: _method(method, document["servicePath"])
        for method in _methods(document["resources"])
        if method["id"].partition(".")[2].startswith(beginnings)
    }
    schemas: dict[str, Any] = {}
    _reach(found, document["schemas"], schemas)
    query = {name: _value(each) for name, each in document["parameters"].items()}
    return {"revision": document["revision"], "query": query, "methods": found, "schemas": schemas}


def routes_of(document: Mapping[str, Any]) -> dict[str, str]:
    """`VERB path` of every method by its name."""
    methods = [
        _method(method, document["servicePath"]) | {"id": method["id"]}
        for method in _methods(document["resources"])
    ]
    return {method["id"].partition(".")[2]: f"{method['verb']} {method['path']}" for method in methods}


def _methods(resources: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for resource in resources.values():
        yield from resource.get("methods", {}).values()
        yield from _methods(resource.get("resources", {}))


def _method(method: Mapping[str, Any], service_path: str) -> dict[str, Any]:
    upload = method.get("mediaUpload", {}).get("protocols", {}).get("simple", {}).get("path", "")
    return {
        "verb": method["httpMethod"],
        "path": service_path + method.get("flatPath", method["path"]),
        **({"upload": upload.lstrip("/")} if upload else {}),
        **{side: method[side]["$ref"] for side in ("request", "response") if side in method},
        "parameters": {name: _value(each) for name, each in method.get("parameters", {}).items()},
    }


def _value(schema: Mapping[str, Any]) -> dict[str, Any]:
    kept = {key: schema[key] for key in _OF_A_VALUE if key in schema}
    for key in ("items", "additionalProperties"):
        if key in kept:
            kept[key] = _value(kept[key])
    if "properties" in kept:
        kept["properties"] = {name: _value(each) for name, each in kept["properties"].items()}
    by_methods = schema.get("annotations", {}).get("required")
    if by_methods:
        kept["required"] = [each.partition(".")[2] for each in by_methods]
    elif schema.get("required") is True or _REQUIRED.match(schema.get("description", "")):
        kept["required"] = True
    return kept


def _reach(value: object, schemas: Mapping[str, Any], reached: dict[str, Any]) -> None:
    """Add to `reached` what the value refers to, itself or through others."""
    match value:
        case dict():
            for key, inner in value.items():
                if key in ("$ref", "request", "response") and isinstance(inner, str):
                    if inner not in reached:
                        reached[inner] = _value(schemas[inner])
                        _reach(reached[inner], schemas, reached)
                else:
                    _reach(inner, schemas, reached)
        case list():
            for inner in value:
                _reach(inner, schemas, reached)
