"""The methods on jobs and other resources, with the HTTP rules from google/cloud/aiplatform/v1/*_service.proto.

Each request is a protobuf message, whichever way it came: over REST, or over gRPC through the gateway.
"""

import re
from collections.abc import Iterator
from typing import Any

from google.cloud.aiplatform_v1.types import (  # noqa: F401  # for `message_of`: all of `types` takes 12 MiB more
    endpoint_service,
    job_service,
    lineage_subgraph,
    metadata_service,
    model_service,
    operation,
    persistent_resource_service,
    pipeline_service,
    tensorboard_service,
)
from google.longrunning import operations_pb2  # type: ignore[import-untyped]
from google.protobuf import descriptor_pool, empty_pb2, message_factory

from trainstack.transcoding.method import Method, Services, method_from

KINDS = {
    "CustomJob": ("JobService", "customJobs", "Create Get List Cancel Delete"),
    "HyperparameterTuningJob": ("JobService", "hyperparameterTuningJobs", "Create Get List Cancel Delete"),
    "PersistentResource": (
        "PersistentResourceService",
        "persistentResources",
        "Create Get List Update Delete",
    ),
    "TrainingPipeline": ("PipelineService", "trainingPipelines", "Create Get List Cancel Delete"),
    "Model": ("ModelService", "models", "Get List Update Delete"),
    "Endpoint": ("EndpointService", "endpoints", "Create Get List Update Delete"),
    "MetadataStore": ("MetadataService", "metadataStores", "Create Get List Delete"),
    "Context": ("MetadataService", "metadataStores/*/contexts", "Create Get List Update Delete"),
    "Execution": ("MetadataService", "metadataStores/*/executions", "Create Get List Update Delete"),
    "Artifact": ("MetadataService", "metadataStores/*/artifacts", "Create Get List Update Delete"),
    "Tensorboard": ("TensorboardService", "tensorboards", "Create Get List Delete"),
    "TensorboardExperiment": ("TensorboardService", "tensorboards/*/experiments", "Create Get List Delete"),
    "TensorboardRun": ("TensorboardService", "tensorboards/*/experiments/*/runs", "Create Get List Delete"),
    "TensorboardTimeSeries": ("TensorboardService", "tensorboards/*/experiments/*/runs/*/timeSeries", "List"),
}
"""Each kind of resource: its service, where its names end, and which of the standard methods are served."""
_MORE = (
    ("ModelService", "UploadModel", "POST /v1/{parent=LOCATION}/models:upload", "Operation"),
    ("ModelService", "ListModelVersions", "GET /v1/{name=LOCATION/models/*}:listVersions", "ListModelVersionsResponse"),
    ("ModelService", "DeleteModelVersion", "DELETE /v1/{name=LOCATION/models/*}:deleteVersion", "Operation"),
    ("ModelService", "MergeVersionAliases", "POST /v1/{name=LOCATION/models/*}:mergeVersionAliases", "Model"),
    ("EndpointService", "DeployModel", "POST /v1/{endpoint=ENDPOINT}:deployModel", "Operation"),
    ("EndpointService", "UndeployModel", "POST /v1/{endpoint=ENDPOINT}:undeployModel", "Operation"),
    ("MetadataService", "AddContextArtifactsAndExecutions", "POST /v1/{context=CONTEXT}:addContextArtifactsAndExecutions",
     "AddContextArtifactsAndExecutionsResponse"),
    ("MetadataService", "AddContextChildren", "POST /v1/{context=CONTEXT}:addContextChildren", "AddContextChildrenResponse"),
    ("MetadataService", "QueryContextLineageSubgraph", "GET /v1/{context=CONTEXT}:queryContextLineageSubgraph",
     "LineageSubgraph"),
    ("MetadataService", "AddExecutionEvents", "POST /v1/{execution=EXECUTION}:addExecutionEvents",
     "AddExecutionEventsResponse"),
    ("MetadataService", "QueryExecutionInputsAndOutputs",
     "GET /v1/{execution=EXECUTION}:queryExecutionInputsAndOutputs", "LineageSubgraph"),
)  # fmt: skip
_OF_ALL_APIS = {"Operation": operations_pb2.Operation, "Empty": empty_pb2.Empty}
OPERATIONS = "google.longrunning.Operations"
_OF_OPERATIONS = (
    ("GetOperation", "GET /v1/{name=PARENT/operations/*}", operations_pb2.Operation),
    ("WaitOperation", "POST /v1/{name=PARENT/operations/*}:wait", operations_pb2.Operation),
    ("ListOperations", "GET /v1/{name=PARENT}/operations", operations_pb2.ListOperationsResponse),
)
LOCATION = "projects/*/locations/*"
_STORE = f"{LOCATION}/metadataStores/*"
_VERBS = {"Get": "GET", "List": "GET", "Update": "PATCH", "Delete": "DELETE"}
_LONG_RUNNING = (
    "CreateEndpoint",
    "CreateMetadataStore",
    "CreatePersistentResource",
    "CreateTensorboard",
    "UpdatePersistentResource",
)


def methods() -> Iterator[tuple[str, Method]]:
    """Each method with its service's name."""
    for kind, (service, names, verbs) in KINDS.items():
        for verb in verbs.split():
            yield service, _standard(verb, kind, f"{LOCATION}/{names}")
    for parent in (LOCATION, f"{LOCATION}/models/*", f"{LOCATION}/endpoints/*"):
        for name, rule, answer in _OF_OPERATIONS:
            request = getattr(operations_pb2, f"{name}Request")
            yield OPERATIONS, method_from(rule.replace("PARENT", parent), name, request, answer)
    for service, name, rule, answer in _MORE:
        places = {
            "LOCATION": LOCATION,
            "ENDPOINT": f"{LOCATION}/endpoints/*",
            "CONTEXT": f"{_STORE}/contexts/*",
            "EXECUTION": f"{_STORE}/executions/*",
        }
        path = re.sub("=([A-Z]+)", lambda match: f"={places[match[1]]}", rule)  # noqa: B023 - used at once
        body = "*" if rule.startswith("POST") else ""
        yield service, method_from(path, name, message_of(f"{name}Request"), message_of(answer), body=body)


def message_of(name: str) -> Any:
    """The protobuf class of a message that the modules above define or contain, or that every API has."""
    return _OF_ALL_APIS.get(name) or message_factory.GetMessageClass(
        descriptor_pool.Default().FindMessageTypeByName(f"google.cloud.aiplatform.v1.{name}")
    )


def services() -> Services:
    """The methods over gRPC by service; operations are requested at the same address."""
    found: dict[str, list[Method]] = {}
    for service, method in methods():
        name = service if service == OPERATIONS else f"google.cloud.aiplatform.v1.{service}"
        found.setdefault(name, []).append(method)
    return found


def snake_case(kind: str) -> str:
    """`TensorboardRun` as a field's name."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in kind).lstrip("_")


def list_method(kind: str) -> str:
    return f"List{kind}" if kind.endswith("s") else f"List{kind}s"


def _standard(verb: str, kind: str, names: str) -> Method:
    parent, _, collection = names.rpartition("/")
    field, name = snake_case(kind), f"{verb}{kind}"
    path, answer, body = f"{{name={names}/*}}", kind, ""
    match verb:
        case "Create":
            path, body = f"{{parent={parent}}}/{collection}", field
            answer = "Operation" if name in _LONG_RUNNING else kind
        case "List":
            name = list_method(kind)
            path, answer = f"{{parent={parent}}}/{collection}", f"{name}Response"
        case "Update":
            path, body = f"{{{field}.name={names}/*}}", field
            answer = "Operation" if name in _LONG_RUNNING else kind
        case "Cancel":
            path, body, answer = f"{path}:cancel", "*", "Empty"
        case "Delete":
            answer = "Operation"
    request = message_of(f"{name}Request")
    return method_from(f"{_VERBS.get(verb, 'POST')} /v1/{path}", name, request, message_of(answer), body=body)
