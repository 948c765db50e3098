"""Deploy to a project, or update a deployment, after checks that create nothing."""

import sys
from collections.abc import Iterable
from enum import Enum, auto

from trainmaster.client.submission.source import UnusableFile
from trainmaster.deploy.agents import ask_for_agents, grant_late_agents
from trainmaster.deploy.gcloud import GcloudFailed, gcloud
from trainmaster.deploy.names import SETTINGS, Names, setting
from trainmaster.deploy.preflight import PreflightResult, clearance_of, valid_names
from trainmaster.deploy.terraform_cli import TerraformFailed, terraform_for, version_fault

REFUSED = 2
FIRST_APIS = ("cloudresourcemanager.googleapis.com", "serviceusage.googleapis.com")
"""Terraform calls them before it can enable any API, on the project's quota (versions.tf)."""


class Mode(Enum):
    """How far to deploy: CHECK changes nothing, PLAN enables FIRST_APIS and creates the state bucket."""

    CHECK = auto()
    PLAN = auto()
    APPLY = auto()


def deploy(project: str, region: str, deployment: str, mode: Mode) -> int:
    """Return the exit status: 0 done, 1 failed halfway (run it again), 2 refused before anything was created."""
    unchanged = f"Nothing was created in {project!r}."
    try:
        names = valid_names(project, region, deployment)
    except UnusableFile as unusable:
        return refuse([str(unusable)], unchanged)
    old = version_fault()
    clearance = clearance_of(names)
    if faults := [*([old] if old else []), *clearance.faults]:
        return refuse(faults, unchanged)
    for line in _notes(names, clearance):
        print(line)
    _warn(clearance.warnings)
    if mode is Mode.CHECK:
        named = f" with the name {deployment}" if deployment else ""
        print(f"Ready to deploy to {names.project} in {names.region}{named}.")
        return 0
    try:
        _run(names, clearance, mode)
    except (GcloudFailed, TerraformFailed) as failed:
        print(f"{failed}\nWhat was created stays; run the same command again to continue.", file=sys.stderr)
        return 1
    return 0


def refuse(faults: Iterable[str], unchanged: str) -> int:
    """Print the faults, and what they left as it was. Returns the exit status."""
    for line in (*(f"refused: {fault}" for fault in faults), unchanged):
        print(line, file=sys.stderr)
    return REFUSED


def _run(names: Names, clearance: PreflightResult, mode: Mode) -> None:
    terraform = terraform_for(names)
    gcloud("services", "enable", *FIRST_APIS, f"--project={names.project}")
    if not clearance.state_bucket_exists:
        make_state_bucket(names)
    terraform.init()
    if mode is Mode.PLAN:
        terraform.run("plan", "-input=false", *terraform.variables(clearance))
        return
    agents = (names.project, clearance.project_number)
    unasked = ask_for_agents(*agents)
    terraform.run("apply", "-input=false", "-auto-approve", *terraform.variables(clearance))
    # Minutes later, an agent that was created is known to IAM, and an API that was enabled answers.
    _warn(grant_late_agents(*agents, unasked and ask_for_agents(*agents)))


def _warn(warnings: Iterable[str]) -> None:
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)


def make_state_bucket(names: Names) -> None:
    """Create the bucket of Terraform's state, with versioning, and with the settings' key and soft delete.

    Raises:
        GcloudFailed: the bucket could not be created.
    """
    uri = f"gs://{names.state_bucket}"
    key = setting("kms_key")
    if key is not None:
        gcloud("storage", "service-agent", f"--authorize-cmek={key}", f"--project={names.project}")
    gcloud(
        "storage",
        "buckets",
        "create",
        uri,
        f"--project={names.project}",
        f"--location={names.region}",
        "--uniform-bucket-level-access",
        "--public-access-prevention",
        f"--soft-delete-duration={setting('soft_delete_s') or 0}s",
        *([] if key is None else [f"--default-encryption-key={key}"]),
    )
    gcloud("storage", "buckets", "update", uri, "--versioning")


def _notes(names: Names, clearance: PreflightResult) -> list[str]:
    return [
        f"settings are those of {SETTINGS}"
        if SETTINGS.is_file()
        else f"no {SETTINGS} here: default settings",
        *(f"bucket {name} already exists and is kept" for name in clearance.kept_buckets.values()),
        *(f"role {name} already exists and is kept" for name in clearance.kept_roles),
        *(f"workload identity pool {name} already exists and is kept" for name in clearance.kept_pools),
        *(
            f"account {names.accounts[name].partition('@')[0]} already exists and is kept"
            for name in clearance.kept_accounts
        ),
        *(f"the topic for {role} already exists and is used as it is" for role in clearance.foreign_topics),
    ]
