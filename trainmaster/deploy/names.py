"""Every name that a deployment uses in a project, from the files that define it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainmaster.orchestrator.core.deployment_names import account_email, name_prefix
from trainmaster.resources import DEPLOY, ROOT, TOPOLOGY, parse_topology, parse_yaml

METRICS = (
    *("behind", "ends", "mistakes", "not_started", "quarantined"),
    *("refusals", "refused", "unreconciled", "waits"),
)
"""Log-based metrics of trainmaster/deploy/terraform/plan/monitoring.tf; a test compares them."""
CI_POOLS = {"trainmaster": "Trainmaster: CI", "trainmaster/providers/github": "GitHub Actions"}
"""Titles by id of the pool and its provider in trainmaster/deploy/terraform/ci.tf; a test compares them."""
CONSOLE = "trainmaster-console"
"""Name of the service in trainmaster/deploy/terraform/console.tf; a test compares them."""
POLICY = ROOT / "functions" / "policy.yaml"
SETTINGS = Path("trainmaster.tfvars")
"""The deployment's settings, in the current folder; docs/how-to/deploy.md lists them."""


@dataclass(frozen=True, kw_only=True)
class Names:
    """The names of one deployment. `deployment` is its own name, empty for the one of the project that has none.

    `buckets` and `topics` are by role; `taken` is by kind of resource, as in trainmaster/deploy/existing.py.

    `roles`: titles of the custom roles by id. `pools`: likewise of the workload identity pool and its provider, if CI has one. `accounts`: emails by the keys that Terraform gives them. `teams`: the policy's teams by name, as Terraform's variable `teams` has
    them; `notify`: likewise its receivers of notices. `scheduler_region`: differs from `region` where Cloud Scheduler does
    not support that.
    """

    project: str
    region: str
    deployment: str
    scheduler_region: str
    buckets: Mapping[str, str]
    topics: Mapping[str, str]
    roles: Mapping[str, str]
    pools: Mapping[str, str]
    accounts: Mapping[str, str]
    teams: Mapping[str, Mapping[str, Any]]
    notify: Mapping[str, Mapping[str, Any]]
    taken: Mapping[str, frozenset[str]]

    @property
    def title(self) -> str:
        """How the display name of each account begins, before `: `; Terraform's local `title`, as a test says."""
        return f"Trainmaster {self.deployment}".rstrip()

    @property
    def state_bucket(self) -> str:
        """The bucket of Terraform's state."""
        return f"{self.project}-{name_prefix(self.deployment)}terraform"


def permissions() -> dict[str, Any]:
    table: dict[str, Any] = parse_yaml((DEPLOY / "permissions.yaml").read_text())
    return table


def role_id(name: str, deployment: str) -> str:
    """The id of the deployment's custom role of that name in permissions.yaml."""
    return f"{deployment and f'{deployment}_'}{name}"


def names_of(project: str, region: str, deployment: str = "") -> Names:
    topology = parse_topology(TOPOLOGY, project=project, region=region, deployment=deployment)
    table, teams = permissions(), team_settings()
    prefix = name_prefix(deployment)
    functions = frozenset(f"{prefix}{name}" for name in topology["functions"])
    own_topics = {
        team: topic
        for team, said in teams.items()
        if (topic := said.get("requests_topic")) and topic not in topology["topics"].values()
    }
    requests = [
        f"{prefix}{name}"
        for name, each in topology["functions"].items()
        if each["trigger"] == {"topic": "requests"}
    ]
    of_ci = ci_roles()
    of_teams = (f"{kind}-{team}" for kind in ("trainer", "eval") for team in teams)
    others = (*of_teams, *(f"ci-{role}" for role in of_ci))
    accounts = [*topology["functions"], *table["accounts"], *others]
    emails = {name: account_email(name, project, prefix) for name in accounts}
    return Names(
        project=project,
        region=region,
        deployment=deployment,
        scheduler_region=setting("scheduler_region") or region,
        buckets={**topology["buckets"], "builds": f"{project}-{prefix}builds"},
        topics=topology["topics"],
        roles={
            role_id(name, deployment): role["title"]
            for name, role in table["roles"].items()
            if role.get("custom")
        },
        pools={f"{prefix}{name}": title for name, title in CI_POOLS.items() if of_ci},
        accounts=emails,
        teams=teams,
        notify=receiver_settings(shipped_policy()),
        taken={
            "topic": frozenset((*topology["topics"].values(), *own_topics.values())),
            "subscription": frozenset(topology["subscriptions"]),
            "log sink": frozenset(topology["sinks"]),
            "log metric": frozenset(
                f"trainmaster/{deployment and f'{deployment}/'}{name}" for name in METRICS
            ),
            "Cloud Run service": functions | ({f"{prefix}{CONSOLE}"} if setting("console") else frozenset()),
            "Eventarc trigger": functions | {f"{name}-{team}" for name in requests for team in own_topics},
            "schedule": frozenset(topology["schedules"]),
            "repository": frozenset({topology["images"]["trainer"].split("/")[2]}),
            "service account": frozenset(emails.values()),
        },
    )


def shipped_policy(file: Path = POLICY) -> dict[str, Any]:
    """The document of the policy that is deployed, as it is written."""
    return parse_yaml(file.read_text()) or {}


def policy_keys(policy: Mapping[str, Any]) -> frozenset[str]:
    """The keys of the policy that are set, of those on which grants depend."""
    keys = {grant["policy"] for grant in permissions()["grants"] if "policy" in grant}
    return frozenset(key for key in keys if is_asked(policy, key))


def is_asked(policy: Mapping[str, Any], key: str) -> bool:
    """Whether that key of the policy is set, and its `mode`, if it has one, is not `off`, which YAML reads as false."""
    *outer, last = key.split(".")
    for part in outer:
        found = policy.get(part)
        policy = found if isinstance(found, Mapping) else {}
    value = policy.get(last)
    return bool(value) and not (isinstance(value, Mapping) and value.get("mode", True) in (False, "off"))


def receiver_settings(policy: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The policy's receivers of notices by name: the secret, or the addresses, of each."""
    return {
        receiver["name"]: {
            key: kind[key]
            for kind in map(receiver.get, ("slack", "webhook", "email", "github"))
            for key in ("secret", "to")
            if kind and key in kind
        }
        for receiver in policy.get("notify") or ()
    }


def team_settings(policy: Path = POLICY) -> dict[str, dict[str, Any]]:
    """The policy's teams by name: what Terraform needs of each, as far as the policy says it."""
    teams = shipped_policy(policy).get("teams") or {}
    return {
        team: {key: said[key] for key in ("members", "requests_topic") if key in said}
        for team, said in teams.items()
    }


def setting(name: str, settings: Path = SETTINGS) -> str | None:
    """The text or number that the settings give the variable, as Terraform reads it; None if it is not set."""
    found = re.search(rf'^[ \t]*{name}[ \t]*=[ \t]*"?([^"\s]+)', _code(settings), re.MULTILINE)
    return found[1] if found and found[1] != "null" else None


def setting_list(name: str, settings: Path = SETTINGS) -> tuple[str, ...]:
    """The texts of the list that the settings give the variable; none if it is not set."""
    found = re.search(rf"^[ \t]*{name}[ \t]*=[ \t]*\[([^\]]*)\]", _code(settings), re.MULTILINE)
    return tuple(re.findall(r'"([^"]+)"', found[1])) if found else ()


def _code(settings: Path) -> str:
    """The settings without their comments; empty without a file."""
    text = settings.read_text() if settings.is_file() else ""
    return re.sub(r'("[^"\n]*")|/\*[\s\S]*?\*/|(?:#|//).*', lambda found: found[1] or "", text)


def ci_roles(settings: Path = SETTINGS) -> tuple[str, ...]:
    """The roles for which the settings' variable `ci` asks, of those in permissions.yaml; none without it."""
    if setting("ci", settings) is None:
        return ()
    code, roles = _code(settings), permissions()["ci"]
    return tuple(role for role in roles if role == "plan" or re.search(rf'\b{role}"?[ \t]*[=:][ \t]*"', code))


def regions(what: str) -> frozenset[str]:
    """The regions for Vertex AI's `training` jobs, or `building` by any project; trainmaster/deploy/regions.yaml has the sources."""
    read: dict[str, list[str]] = parse_yaml((DEPLOY / "regions.yaml").read_text())
    return frozenset(read[what])
