"""Vertex AI's gRPC calls."""

from google.longrunning import operations_pb2  # type: ignore[import-untyped]

from trainstack.transcoding import Method
from trainstack.transcoding.method import Services, method_from
from trainstack.vertex.resources.methods import LOCATION, methods

_OPERATION = f"/v1/{{name={LOCATION}/operations/*}}"


def services() -> Services:
    """The methods by service; operations are requested at the same address."""
    found: dict[str, list[Method]] = {}
    for service, method in methods():
        found.setdefault(f"google.cloud.aiplatform.v1.{service}", []).append(method)
    operation, get, wait = (
        operations_pb2.Operation,
        operations_pb2.GetOperationRequest,
        operations_pb2.WaitOperationRequest,
    )
    return {
        **found,
        "google.longrunning.Operations": [
            method_from(f"GET {_OPERATION}", "GetOperation", get, operation),
            method_from(f"POST {_OPERATION}:wait", "WaitOperation", wait, operation, body="*"),
        ],
    }
