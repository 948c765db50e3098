"""Identities and environment variables with which the functions and the local user's tools reach the services."""

from collections.abc import Mapping
from pathlib import Path

from trainstack.gateway.authority import BUNDLE
from trainstack.gateway.identity import WorkloadIdentities, WorkloadIdentity
from trainstack.iam.principals import LOCAL_USER, Principal
from trainstack.stack.access import ACCOUNT_PREFIX
from trainstack.stack.services import RunningServices
from trainstack.stack.state import write_whole
from trainstack.stack.topology import Topology

TOKEN = "access-token"  # noqa: S105  # a file's name


async def function_variables(services: RunningServices, topology: Topology) -> dict[str, Mapping[str, str]]:
    """The variables of each function's identity; identities are revoked with the services."""
    variables: dict[str, Mapping[str, str]] = {}
    for function in topology.functions:
        email = f"{ACCOUNT_PREFIX}{function.name}@{topology.project}.iam.gserviceaccount.com"
        principal = Principal(kind="function", name=function.name, email=email)
        variables[function.name] = (await _issue_identity(principal, services, topology)).variables
    return variables


async def user_variables(
    services: RunningServices, topology: Topology, *, folder: Path
) -> tuple[dict[str, str], dict[str, str]]:
    """Variables for the local user's gcloud, and others for programs that use Google's default endpoints.

    `folder`, which only the user can read, gets a file with the access token, and the configurations of gcloud and gsutil.
    """
    identity = await _issue_identity(LOCAL_USER, services, topology)
    token_file = folder / TOKEN
    write_whole(token_file, identity.token)
    gcloud = gcloud_variables(services.identities, topology, token_file=token_file, config=folder / "gcloud")
    return gcloud, dict(identity.variables)


def gcloud_variables(
    identities: WorkloadIdentities, topology: Topology, *, token_file: Path, config: Path
) -> dict[str, str]:
    """Gcloud's properties as variables, and a configuration of gsutil's: https://cloud.google.com/sdk/docs/properties

    Both go through the gateway, which also refuses at once what the stack does not serve. A separate configuration keeps
    the user's account out of the stack, and the stack out of the user's configuration.
    """
    boto = config.parent / "boto.cfg"
    proxy = {
        "ADDRESS": "127.0.0.1",
        "PORT": str(identities.gateway_port),
        "USERNAME": LOCAL_USER.kind,
        "PASSWORD": token_file.read_text(),
    }
    bundle = str(identities.trust / BUNDLE)
    write_whole(boto, _boto_config(proxy, bundle, topology.project, config.parent / "gsutil"))
    return {
        "CLOUDSDK_CONFIG": str(config),
        "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE": str(token_file),
        "CLOUDSDK_CORE_PROJECT": topology.project,
        "CLOUDSDK_AI_REGION": topology.region,
        "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING": "true",
        "CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK": "true",
        "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE": bundle,
        "CLOUDSDK_PROXY_TYPE": "http",
        **{f"CLOUDSDK_PROXY_{name}": value for name, value in proxy.items()},
        # gcloud's gsutil would look for an account instead, on a metadata server too.
        "CLOUDSDK_CORE_PASS_CREDENTIALS_TO_GSUTIL": "false",
        "BOTO_CONFIG": str(boto),
    }


def _boto_config(proxy: Mapping[str, str], bundle: str, project: str, state: Path) -> str:
    """Source of the names: https://cloud.google.com/storage/docs/boto-gsutil"""
    return (
        f"[Credentials]\ngs_oauth2_refresh_token = {proxy['PASSWORD']}\n"
        f"[Boto]\nca_certificates_file = {bundle}\nproxy = {proxy['ADDRESS']}\nproxy_port = {proxy['PORT']}\n"
        f"proxy_user = {proxy['USERNAME']}\nproxy_pass = {proxy['PASSWORD']}\n"
        f"[GSUtil]\nprefer_api = json\ndefault_project_id = {project}\nstate_dir = {state}\n"
    )


async def _issue_identity(
    principal: Principal, services: RunningServices, topology: Topology
) -> WorkloadIdentity:
    identity = await services.identities.issue(principal, zone=f"{topology.region}-a")
    services.running.push_async_callback(services.identities.revoke, identity)
    return identity
