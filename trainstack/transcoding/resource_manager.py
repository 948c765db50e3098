"""Resource Manager's gRPC calls, with the HTTP rules from google/cloud/resourcemanager/v3/projects.proto."""

from google.cloud.resourcemanager_v3.types import projects
from google.iam.v1 import iam_policy_pb2, policy_pb2

from trainstack.transcoding.method import Services, method_from

_POLICY = "POST /v3/{resource=projects/*}"


def services() -> Services:
    """The methods by service. The SDK of Vertex AI asks for the project's id, with its number from the metadata server."""
    tested = iam_policy_pb2.TestIamPermissionsRequest, iam_policy_pb2.TestIamPermissionsResponse
    return {
        "google.cloud.resourcemanager.v3.Projects": [
            method_from(
                "GET /v3/{name=projects/*}", "GetProject", projects.GetProjectRequest, projects.Project
            ),
            method_from(
                f"{_POLICY}:getIamPolicy",
                "GetIamPolicy",
                iam_policy_pb2.GetIamPolicyRequest,
                policy_pb2.Policy,
                body="*",
            ),
            method_from(f"{_POLICY}:testIamPermissions", "TestIamPermissions", *tested, body="*"),
        ]
    }
