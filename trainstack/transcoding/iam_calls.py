"""The gRPC calls of IAM's port, with the HTTP rules of Resource Manager v3 and of Service Account Credentials v1."""

from google.cloud.resourcemanager_v3.types import projects

from trainstack.transcoding.message_types import message_type
from trainstack.transcoding.method import Method, Services, method_from

_CREDENTIALS = "google.iam.credentials.v1"


def services() -> Services:
    """The methods by service. Vertex AI's SDK asks for the id of the project whose number the metadata server gave it."""
    rule = "GET /v3/{name=projects/*}"
    project = method_from(rule, "GetProject", projects.GetProjectRequest, projects.Project)
    return {
        "google.cloud.resourcemanager.v3.Projects": [project],
        f"{_CREDENTIALS}.IAMCredentials": [
            _of_account(
                "GenerateAccessToken",
                {"delegates": (2, "string*"), "scope": (4, "string*"), "lifetime": (7, "Duration")},
                {"access_token": (1, "string"), "expire_time": (3, "Timestamp")},
            ),
            _of_account(
                "SignBlob",
                {"delegates": (3, "string*"), "payload": (5, "bytes")},
                {"key_id": (1, "string"), "signed_blob": (4, "bytes")},
            ),
        ],
    }


def _of_account(name: str, asked: dict[str, tuple[int, str]], answered: dict[str, tuple[int, str]]) -> Method:
    """A method of a service account, with the numbers and kinds of its fields in common.proto of its API."""
    rule = f"POST /v1/{{name=projects/*/serviceAccounts/*}}:{name[0].lower()}{name[1:]}"
    request = message_type(_CREDENTIALS, f"{name}Request", name=(1, "string"), **asked)
    response = message_type(_CREDENTIALS, f"{name}Response", **answered)
    return method_from(rule, name, request, response, body="*")
