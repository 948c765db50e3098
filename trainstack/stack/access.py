"""A project's grants, from a table such as trainmaster/deploy/permissions.yaml, which Terraform uses too."""

import hashlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from trainstack.gateway.identity import default_account
from trainstack.iam import Grant, Grants
from trainstack.iam.service import BUCKETS
from trainstack.logging.resources import writer_identity
from trainstack.project import project_number
from trainstack.stack.topology import Topology

TRAINER = "trainer"
"""The account of jobs whose request names none."""
ID_MAX_CHARS = 30
"""Of an account. Source: https://cloud.google.com/iam/docs/service-accounts-create"""
ACCOUNT_PREFIX = "tm-"
"""The same as in trainmaster/deploy/terraform/plan/grants.tf; a parity test compares both."""


def grants_of(
    topology: Topology,
    table_path: Path,
    teams: Iterable[str] = (),
    *,
    beside: Sequence[Topology] = (),
    enforced: bool = True,
) -> Grants:
    """The grants of a freshly deployed project with these teams; those on topics that it lacks are left out.

    `beside` are the other deployments in the project.

    Their members get none here: only the local user, who owns the project, uses the stack.

    The account of jobs that name none has the grants of the trainers' account. In the cloud it could read the ledger.

    Raises:
        OSError, yaml.YAMLError: the table cannot be read.
        ValueError: it has a grant on an unknown kind of resource.
    """
    # Read by libyaml where it is built, in a tenth of the time.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    table: Mapping[str, Any] = yaml.load(table_path.read_text(), Loader=loader)  # noqa: S506 - both are safe
    deployments, teams = [topology, *beside], list(teams)
    roles = {
        _role(name, role, each): frozenset(role.get("permissions", ()))
        for each in deployments
        for name, role in table["roles"].items()
    }
    return Grants(
        project=topology.project,
        project_number=project_number(topology.project),
        grants=itertools.chain.from_iterable(_grants(each, table, teams) for each in deployments),
        roles=roles,
        buckets=[name for each in deployments for name in each.buckets.values()],
        enforced=enforced,
    )


def markers_of(grants: Grants, topology: Topology, buckets_dir: Path) -> set[Path]:
    """The single objects that accounts are granted, which the deployment creates, as paths below the buckets' folder."""
    own = {f"{BUCKETS}{name}" for name in topology.buckets.values()}
    return {
        buckets_dir / grant.resource.removeprefix(BUCKETS) / grant.object
        for grant in grants.granted
        if grant.object and grant.resource in own
    }


def _grants(topology: Topology, table: Mapping[str, Any], teams: Iterable[str]) -> Iterator[Grant]:
    rows = [(row, "") for row in table["grants"]]
    rows += [(row, team) for team in teams for row in table["team_grants"]]
    for row, team in rows:
        named = {
            "functions": [function.name.removeprefix(topology.prefix) for function in topology.functions],
            "team": [f"trainer-{team}"],
            "team_eval": [f"eval-{team}"],
            "members": [],
        }
        ((kind, thing),) = row["thing"].items()
        if kind == "topic" and thing not in topology.topics:
            continue
        role = _role(row["role"], table["roles"][row["role"]], topology)
        accounts = [account for name in row["accounts"] for account in named.get(name, [name])]
        parts = [*row.get("folders", ()), *row.get("objects", ())] or [""]
        for name, on, part in itertools.product(accounts, named.get(thing, [thing]), parts):
            place = part.replace("${team}", team)
            for member in _members(name, table, topology):
                yield Grant(
                    member=member,
                    role=role,
                    resource=_resource(kind, on, topology),
                    folder=place if "folders" in row else "",
                    object=place if "objects" in row else "",
                )
    for sink in topology.sinks:  # trainmaster/deploy/terraform/sink.tf
        writer = writer_identity(f"projects/{topology.project}", unique=True)
        yield Grant(member=writer, role="roles/pubsub.publisher", resource=sink.topic_name)


def account_email(name: str, topology: Topology) -> str:
    """The email of an account of the table; an id that is too long ends in a hash, as in Terraform's."""
    whole = f"{ACCOUNT_PREFIX}{topology.prefix}{name}"
    if len(whole) > ID_MAX_CHARS:
        whole = f"{whole[: ID_MAX_CHARS - 9]}-{hashlib.sha256(whole.encode()).hexdigest()[:8]}"
    return f"{whole}@{topology.project}.iam.gserviceaccount.com"


def _role(name: str, role: Mapping[str, Any], topology: Topology) -> str:
    before = topology.prefix.replace("-", "_")
    return f"projects/{topology.project}/roles/{before}{name}" if role.get("custom") else name


def _members(name: str, table: Mapping[str, Any], topology: Topology) -> Iterator[str]:
    agent, number = table["agents"].get(name), project_number(topology.project)
    if agent is not None:
        yield f"serviceAccount:service-{number}@{agent['domain']}.iam.gserviceaccount.com"
        return
    yield f"serviceAccount:{account_email(name, topology)}"
    if name == TRAINER:
        yield f"serviceAccount:{default_account(number)}"


def _resource(kind: str, thing: str, topology: Topology) -> str:
    project = topology.project
    match kind:
        case "bucket":
            return f"projects/_/buckets/{topology.buckets.get(thing, f'{project}-{topology.prefix}{thing}')}"
        case "topic":
            return topology.topic_name(thing)
        case "account":
            return f"projects/{project}/serviceAccounts/{account_email(thing, topology)}"
        case "function":
            return f"projects/{project}/locations/{topology.region}/services/*"
        case "subscription" | "secret":  # the stack has no secrets: a function reads files in their place
            return f"projects/{project}/{kind}s/*"
        case "project":
            return f"projects/{project}"
        case _:
            raise ValueError(f"a grant on the {kind} {thing!r}: unknown kind of resource {kind!r}")
