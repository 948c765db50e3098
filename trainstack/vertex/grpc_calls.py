"""Vertex AI's gRPC calls."""

from trainstack.transcoding import Method
from trainstack.transcoding.method import Services
from trainstack.vertex.resources.methods import OPERATIONS, methods


def services() -> Services:
    """The methods by service; operations are requested at the same address."""
    found: dict[str, list[Method]] = {}
    for service, method in methods():
        name = service if service == OPERATIONS else f"google.cloud.aiplatform.v1.{service}"
        found.setdefault(name, []).append(method)
    return found
