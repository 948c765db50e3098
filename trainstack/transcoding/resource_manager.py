"""Resource Manager's gRPC call, with the HTTP rule from google/cloud/resourcemanager/v3/projects.proto."""

from google.cloud.resourcemanager_v3.types import projects

from trainstack.transcoding.method import Services, method_from


def services() -> Services:
    """The methods by service. Vertex AI's SDK asks for the id of the project whose number the metadata server gave it."""
    rule = "GET /v3/{name=projects/*}"
    project = method_from(rule, "GetProject", projects.GetProjectRequest, projects.Project)
    return {"google.cloud.resourcemanager.v3.Projects": [project]}
