"""A deployment's resources and grants, read from the files that define it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainmaster.deploy.names import is_asked, permissions, role_id
from trainmaster.orchestrator.core.deployment_names import account_email, name_prefix
from trainmaster.resources import parse_topology


@dataclass(frozen=True, kw_only=True)
class GrantTarget:
    """A resource that roles are granted on: `name` is its name in gcloud, `resource` its full name in the API.

    `kind` is one of those in permissions.yaml: bucket, topic, subscription, account, function, secret, project; or folder, a
    managed folder of a bucket, or object, a single object of one.
    """

    kind: str
    name: str
    resource: str

    @property
    def parts(self) -> tuple[str, str]:
        """The bucket, and what the folder or object is called in it."""
        _, _, in_buckets = self.resource.partition("/buckets/")
        bucket, _, rest = in_buckets.partition("/")
        return bucket, rest.partition("/")[2]


@dataclass(frozen=True, kw_only=True)
class Expected:
    """One grant of the deployment. `permissions` is empty for Google's service agent roles."""

    account: str
    email: str
    is_agent: bool
    role: str
    permissions: tuple[str, ...]
    thing: GrantTarget

    @property
    def member(self) -> str:
        return f"serviceAccount:{self.email}"


@dataclass(frozen=True, kw_only=True)
class ExaminedDeployment:
    """The names of one deployment, which itself may have one. `grants` is the content of trainmaster/deploy/permissions.yaml.

    `secrets`: ids of those that the deployed policy's receivers of notices name.
    `builds`: whether it builds images and functions; a local stack runs source trees directly.
    """

    project: str
    region: str
    name: str
    topology: Mapping[str, Any]
    grants: Mapping[str, Any]
    sink_filter_file: Path
    builds: bool
    secrets: tuple[str, ...] = ()

    def bucket(self, role: str) -> GrantTarget:
        """A bucket of the topology, or one that exists only in a deployment and is named the same way."""
        name = self.topology["buckets"].get(role, f"{self.project}-{self.prefix}{role}")
        return GrantTarget(kind="bucket", name=name, resource=f"projects/_/buckets/{name}")

    def topic(self, role: str) -> GrantTarget:
        name = self.topology["topics"][role]
        return GrantTarget(kind="topic", name=name, resource=f"projects/{self.project}/topics/{name}")

    @property
    def prefix(self) -> str:
        """What the names of its functions have before those in the topology."""
        return name_prefix(self.name)

    @property
    def sink_name(self) -> str:
        """The only sink, which exports the job log."""
        (name,) = self.topology["sinks"]
        return str(name)

    @property
    def trainer_image(self) -> str:
        return str(self.topology["images"]["trainer"])

    @property
    def project_thing(self) -> GrantTarget:
        return GrantTarget(kind="project", name=self.project, resource=f"projects/{self.project}")

    def expected_grants(
        self, *, project_number: str, subscriptions: tuple[str, ...], policy: Mapping[str, Any] | None = None
    ) -> Iterator[Expected]:
        """Every grant, one per account and resource. `subscriptions`: full names of those with dead letters.

        `policy`: the deployed one, which some grants depend on; None: all are expected.
        """
        functions = list(self.topology["functions"])
        for row in self.grants["grants"]:
            if policy is not None and "policy" in row and not is_asked(policy, row["policy"]):
                continue
            accounts = [
                each
                for account in row["accounts"]
                for each in (functions if account == "functions" else [account])
            ]
            for account in accounts:
                agent = self.grants["agents"].get(account)
                email = agent and f"service-{project_number}@{agent['domain']}.iam.gserviceaccount.com"
                for thing in self._things_of(row, subscriptions=subscriptions):
                    yield self._expected_grant(row["role"], account, thing, agent_email=email or "")

    def expected_of_teams(self, teams: Sequence[str]) -> Iterator[Expected]:
        """Every grant to a team's account, or on it. Members are people and groups, as whom nothing can be tested."""
        for team in teams:
            for row in self.grants["team_grants"]:
                accounts = [_of_team(each, team) for each in row["accounts"]]
                for account in (each for each in accounts if each != "members"):
                    for thing in self._things_of(row, team=team):
                        yield self._expected_grant(row["role"], account, thing)

    def expected_of_ci(self, roles: Sequence[str], teams: Sequence[str]) -> Iterator[Expected]:
        """Every grant to the accounts of CI with these roles, in a deployment with these teams."""
        deployer = [{"role": name, "thing": {"project": "all"}} for name in self.grants["deployer"]]
        for ci_role in roles:
            for row in [*self.grants["ci"][ci_role]["grants"], *(deployer if ci_role == "deploy" else ())]:
                if not teams or "without_teams" not in row:
                    for thing in self._things_of(row):
                        yield self._expected_grant(row["role"], f"ci-{ci_role}", thing)

    def _expected_grant(
        self, name: str, account: str, thing: GrantTarget, *, agent_email: str = ""
    ) -> Expected:
        """The grant of a role of permissions.yaml; `agent_email` if it goes to one of Google's service agents."""
        role = self.grants["roles"].get(name, {})
        return Expected(
            account=account,
            email=agent_email or account_email(account, self.project, self.prefix),
            is_agent=bool(agent_email),
            role=f"projects/{self.project}/roles/{role_id(name, self.name)}" if role.get("custom") else name,
            permissions=tuple(role.get("permissions", ())),
            thing=thing,
        )

    def _things_of(
        self, row: Mapping[str, Any], *, team: str = "", subscriptions: tuple[str, ...] = ()
    ) -> Iterator[GrantTarget]:
        ((kind, name),) = row["thing"].items()
        if "folders" in row or "objects" in row:
            yield from self._parts(row, name, team)
        else:
            yield from self._things(kind, _of_team(name, team), subscriptions)

    def _parts(self, row: Mapping[str, Any], name: str, team: str = "") -> Iterator[GrantTarget]:
        """The managed folders and the objects of a bucket that the row names."""
        bucket = self.bucket(name)
        for part_kind, collection, key in (
            ("folder", "managedFolders", "folders"),
            ("object", "objects", "objects"),
        ):
            for pattern in row.get(key, ()):
                part = pattern.replace("${team}", team)
                resource = f"{bucket.resource}/{collection}/{part}"
                yield GrantTarget(kind=part_kind, name=f"gs://{bucket.name}/{part}", resource=resource)

    def _things(self, kind: str, name: str, subscriptions: tuple[str, ...]) -> Iterator[GrantTarget]:
        prefix = f"projects/{self.project}"
        match kind:
            case "bucket":
                if name in self.topology["buckets"] or self.builds:
                    yield self.bucket(name)
            case "topic":
                yield self.topic(name)
            case "account":
                for account in self.topology["functions"] if name == "functions" else [name]:
                    email = account_email(account, self.project, self.prefix)
                    yield GrantTarget(kind=kind, name=email, resource=f"{prefix}/serviceAccounts/{email}")
            case "function":
                for key in self.topology["functions"]:
                    function = f"{self.prefix}{key}"
                    resource = f"{prefix}/locations/{self.region}/services/{function}"
                    yield GrantTarget(kind=kind, name=function, resource=resource)
            case "secret":
                for secret in self.secrets:
                    yield GrantTarget(kind=kind, name=secret, resource=f"{prefix}/secrets/{secret}")
            case "subscription":
                for subscription in subscriptions:
                    yield GrantTarget(kind=kind, name=subscription.rpartition("/")[2], resource=subscription)
            case _:
                yield self.project_thing


def _of_team(name: str, team: str) -> str:
    """The account of the team that a name in team_grants stands for; any other name as it is."""
    return {"team": f"trainer-{team}", "team_eval": f"eval-{team}"}.get(name, name)


def deployment_of(
    *, project: str, region: str, topology: Path, name: str = "", builds: bool = True
) -> ExaminedDeployment:
    """The deployment of this name in the project and region; without one, that which has none.

    Raises:
        OSError, ValueError, yaml.YAMLError: the topology cannot be read, or has no or several sinks.
    """
    loaded = parse_topology(topology, project=project, region=region, deployment=name)
    match list(loaded["sinks"].values()):
        case [{"filter_file": str(filter_file)}]:
            pass
        case found:
            raise ValueError(
                f"{topology}: $.sinks: expected one sink with a filter_file, found {found!r:.80}"
            )
    return ExaminedDeployment(
        project=project,
        region=region,
        name=name,
        topology=loaded,
        grants=permissions(),
        builds=builds,
        sink_filter_file=topology.parent / filter_file,
    )
