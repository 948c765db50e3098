"""Identities and environment variables with which the functions and the local user's tools reach the services."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path

from trainstack.gateway.identity import WorkloadIdentity
from trainstack.iam.principals import LOCAL_USER, Principal
from trainstack.stack.access import ACCOUNT_PREFIX
from trainstack.stack.services import RunningServices
from trainstack.stack.state import write_whole
from trainstack.stack.topology import Topology

TOKEN = "access-token"  # noqa: S105  # a file's name


def function_addresses(services: RunningServices) -> dict[str, str]:
    """The variables that point a function's clients at the services, besides those of its identity.

    All clients go through the gateway, as a replica's do, except that of Cloud Storage, of which the functions make most
    of their calls: this variable of google-cloud-storage is an endpoint that gets credentials, which
    STORAGE_EMULATOR_HOST is not.
    """
    return {"API_ENDPOINT_OVERRIDE": services.storage_url}


async def function_variables(
    services: RunningServices, topology: Topology, running: AsyncExitStack
) -> dict[str, Mapping[str, str]]:
    """The variables of each function's identity; identities are revoked with `running`."""
    variables: dict[str, Mapping[str, str]] = {}
    for function in topology.functions:
        email = f"{ACCOUNT_PREFIX}{function.name}@{topology.project}.iam.gserviceaccount.com"
        principal = Principal(kind="function", name=function.name, email=email)
        variables[function.name] = (await _issue_identity(principal, services, topology, running)).variables
    return variables


async def user_variables(
    services: RunningServices, topology: Topology, running: AsyncExitStack, *, folder: Path
) -> tuple[dict[str, str], dict[str, str]]:
    """Variables for the local user's gcloud, and others for programs that use Google's default endpoints.

    `folder`, which only the user can read, gets a file with the access token, and gcloud's configuration.
    """
    identity = await _issue_identity(LOCAL_USER, services, topology, running)
    token_file = folder / TOKEN
    write_whole(token_file, identity.token)
    gcloud = gcloud_variables(services, topology, token_file=token_file, config=folder / "gcloud")
    return gcloud, dict(identity.variables)


def gcloud_variables(
    services: RunningServices, topology: Topology, *, token_file: Path, config: Path
) -> dict[str, str]:
    """Gcloud's properties as variables: https://cloud.google.com/sdk/docs/properties

    A separate configuration keeps the user's account out of the stack, and the stack out of the user's
    configuration. An endpoint must end in a slash.
    """
    endpoints = {
        "AIPLATFORM": f"{services.vertex_url}/",
        "STORAGE": f"{services.storage_url}/storage/v1/",
        "LOGGING": f"{services.logging_url}/",
        "PUBSUB": f"{services.pubsub_rest_url}/",
        "IAM": f"{services.iam_url}/",
        "IAMCREDENTIALS": f"{services.iam_url}/",
        "CLOUDRESOURCEMANAGER": f"{services.iam_url}/",
    }
    return {
        "CLOUDSDK_CONFIG": str(config),
        "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE": str(token_file),
        "CLOUDSDK_CORE_PROJECT": topology.project,
        "CLOUDSDK_AI_REGION": topology.region,
        "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING": "true",
        "CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK": "true",
        **{f"CLOUDSDK_API_ENDPOINT_OVERRIDES_{name}": url for name, url in endpoints.items()},
    }


async def _issue_identity(
    principal: Principal, services: RunningServices, topology: Topology, running: AsyncExitStack
) -> WorkloadIdentity:
    identity = await services.identities.issue(principal, zone=f"{topology.region}-a")
    running.push_async_callback(services.identities.revoke, identity)
    return identity
