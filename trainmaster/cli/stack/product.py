"""The product that the local stack runs: the functions, the trainer's image, and the grants and teams of a deployment."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import yaml

from trainmaster.cli.stack.news import News
from trainmaster.client.context import context_in_cloud
from trainmaster.client.deployment import deployment_document
from trainmaster.client.submission.terms import read_policy
from trainmaster.orchestrator.core.documents.values import mapping_at, text_at
from trainmaster.orchestrator.core.names import DEPLOYMENT_OBJECT
from trainmaster.resources import DEPLOY, IMPORTED_FROM, ROOT, NotATopology, parse_topology, parse_yaml

if TYPE_CHECKING:
    from trainstack.stack.stack import Product
    from trainstack.stack.topology import Topology

BESIDE_MAX = 4


def product_of(topologies: Sequence["Topology"], functions: Path | None, *, welcome: str) -> "Product":
    """What runs on a stack with these topologies. `functions`: the source folder, unless this version's own is staged."""
    from trainstack.stack.stack import Product

    news = News(partial(print, flush=True))

    def show(topic: str, body: bytes) -> None:
        if topic in [each.topics.get("notices") for each in topologies]:
            news.show(body)

    return Product(
        stage=[sys.executable, "-m", "trainmaster.deploy.stage", "--bytecode"],
        stage_in=IMPORTED_FROM,
        preload="trainmaster.orchestrator.preload",
        images={each.images["trainer"]: ROOT for each in topologies if (ROOT / "Dockerfile").is_file()},
        permissions=DEPLOY / "permissions.yaml",
        machines=ROOT / "functions" / "policy.yaml",
        teams=read_teams(policy_path(topologies[0], functions or ROOT / "functions")),
        publish=partial(_publish_deployments, topologies),
        show=show,
        announce=lambda: welcome,
    )


def read_topology(path: Path, *, project: str, region: str, deployment: str = "") -> "Topology":
    """The topology of the deployment of this name in a project, with substitutions applied.

    Raises:
        BadTopologyError: with every fault found.
    """
    from trainstack.stack.errors import BadTopologyError
    from trainstack.stack.topology import topology_from

    try:
        loaded = parse_topology(path, project=project, region=region, deployment=deployment)
    except NotATopology as error:
        raise BadTopologyError(str(error)) from error
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise BadTopologyError(f"cannot read {path}: {error}") from error
    return topology_from(loaded, path, project=project, region=region)


def read_topologies(path: Path, names: Sequence[str], *, project: str, region: str) -> list["Topology"]:
    """Those of the deployment without a name and of others, by their names. Errors are those of `read_topology`."""
    from trainstack.stack.errors import BadTopologyError

    found = [read_topology(path, project=project, region=region, deployment=name) for name in ("", *names)]
    if len({each.buckets["ledger"] for each in found}) < len(found) or len(names) > BESIDE_MAX:
        allowed = f"at most {BESIDE_MAX} different names, and a topology whose names have ${{prefix}}"
        raise BadTopologyError(f"--name {', '.join(names)} with {path}: expected {allowed}.")
    return found


def with_policy(topology: "Topology", policy: Path) -> "Topology":
    """The topology, whose functions read this policy.

    Raises:
        UnusableFile: the file cannot be read, or is not a valid policy.
    """
    read_policy(policy, context_in_cloud(topology.project, topology.region))
    return replace(
        topology, environment={**topology.environment, "TRAINMASTER_POLICY": str(policy.resolve())}
    )


def with_secrets(topology: "Topology", state: Path) -> "Topology":
    """The topology, whose functions read secrets from the files of a folder in the state folder, which is made."""
    folder = state.absolute() / "secrets"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return replace(topology, environment={**topology.environment, "TRAINMASTER_SECRETS": str(folder)})


def policy_path(topology: "Topology", functions: Path) -> Path:
    """The policy that the functions in this source folder read."""
    return Path(topology.environment.get("TRAINMASTER_POLICY") or functions / "policy.yaml")


def read_teams(policy: Path) -> dict[str, str | None]:
    """The names of the policy's teams, each with the topic of its requests.

    Empty for a file without a policy, which the functions refuse.
    """
    try:
        document = parse_yaml(policy.read_text())
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    teams = mapping_at(document, "teams")
    return {str(team): text_at(settings, "requests_topic") for team, settings in teams.items()}


def _publish_deployments(topologies: Sequence["Topology"], functions: Path, storage_url: str) -> None:
    """Write into each ledger what `trainmaster deploy` does for a deployment.

    Raises:
        StackRefusedError: a file of the functions cannot be read, or the ledger cannot be written.
    """
    from trainstack.events.rest import CallRefusedError, call
    from trainstack.stack.errors import StackRefusedError

    try:
        for topology in topologies:
            bucket = quote(topology.buckets["ledger"])
            path = f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={DEPLOYMENT_OBJECT}"
            call("POST", storage_url, path, _deployment(topology, functions))
    except (OSError, ValueError, KeyError, CallRefusedError) as fault:
        raise StackRefusedError(f"Cannot write {DEPLOYMENT_OBJECT} into the ledger: {fault}") from fault


def _deployment(topology: "Topology", functions: Path) -> Mapping[str, Any]:  # Any: a JSON document
    """The document, schemas/deployment.v1.schema.json, with the policy and prices that the functions' source reads."""
    return deployment_document(
        {"buckets": topology.buckets, "topics": topology.topics, "images": topology.images},
        project=topology.project,
        region=topology.region,
        policy=policy_path(topology, functions).read_bytes(),
        prices=(functions / "prices.yaml").read_bytes(),
    )
