"""Roles of Google's service agents that may come into being later than a deployment.

Vertex AI creates the agent that pulls images with the first job of a project, and then grants it its role. An agent that
was asked for before gets none, and a role can be granted only to an agent that exists. Few may ask for agents, an owner
perhaps not, so this is not Terraform's: a deployment must not fail for it.
Source: https://cloud.google.com/iam/docs/create-service-agents (read 2026-11-26)
"""

from collections.abc import Iterator

from trainmaster.deploy.gcloud import GcloudFailed, gcloud
from trainmaster.deploy.names import permissions

CREATES_AGENTS = "workloadidentity.googleapis.com"


def ask_for_agents(project: str, project_number: str) -> str:
    """Ask for all agents of the services that create some late. Returns why that failed; empty if it did not."""
    services = sorted({agent["created_by"] for agent in _late_agents().values()})
    try:
        gcloud("services", "enable", CREATES_AGENTS, *services, f"--project={project}")
        for service in services:
            gcloud(
                "workload-identity",
                "service-agents",
                "generate",
                f"--service={service}",
                "--location=global",
                f"--project={project_number}",
            )
    except GcloudFailed as failed:
        return str(failed)
    return ""


def grant_late_agents(project: str, project_number: str, unasked: str) -> Iterator[str]:
    """Grant the agents their roles. Yields a warning for each role that could not be granted.

    `unasked`: why they could not be asked for, as `ask_for_agents` says.
    """
    late = _late_agents()
    grants = permissions()["grants"]
    for agent, role in (
        (late[name], row["role"]) for row in grants for name in row["accounts"] if name in late
    ):
        member = f"serviceAccount:service-{project_number}@{agent['domain']}.iam.gserviceaccount.com"
        try:
            gcloud(
                "projects",
                "add-iam-policy-binding",
                project,
                f"--member={member}",
                f"--role={role}",
                "--condition=None",
            )
        except GcloudFailed as failed:
            repair = (
                f"{unasked}. The agent and its role come with the first job, which may fail for the lack of them. To have "
                "both before, deploy again with roles/workloadidentity.admin and the newest gcloud"
                if unasked
                else "the agent exists, but no job can read its image before it has the role: run the same command again"
            )
            yield f"{role} could not be granted to {member}: {failed}; {repair}"


def _late_agents() -> dict[str, dict[str, str]]:
    return {name: agent for name, agent in permissions()["agents"].items() if "created_by" in agent}
