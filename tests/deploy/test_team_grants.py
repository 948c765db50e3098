"""Rights of each team's account and members: Terraform's own grants, evaluated as Cloud Storage does."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.hcl import TERRAFORM
from tests.deploy.plan import PROJECT, REGION, TERRAFORM_BINARY, plan
from trainmaster.cli.stack.product import read_teams, read_topology
from trainmaster.deploy.names import names_of, team_settings
from trainstack.iam import Grant
from trainstack.stack.access import grants_of

pytestmark = pytest.mark.skipif(TERRAFORM_BINARY is None, reason="terraform is not on PATH")

TABLE: dict[str, Any] = yaml.safe_load((TERRAFORM.parent / "permissions.yaml").read_text())
TEAMS = ("vision", "speech")
READ, LIST, CREATE, DELETE = (f"storage.objects.{verb}" for verb in ("get", "list", "create", "delete"))
WRITE = (CREATE, DELETE, "storage.objects.update")


def grants() -> Iterator[tuple[str, str, str, str]]:
    """Account, role, kind and name of every grant; the name of a folder's is its bucket's role, '/' and its own."""
    for kind, of_kind in plan(*TEAMS)["grants"].items():
        for each in of_kind.values():
            part = each.get("folder") or each.get("object")
            name = f"{each['name']}/{part}" if part else each["name"]
            yield each["account"], each["role"].rpartition(f"{PROJECT}/roles/")[2], kind, name


def may(account: str, permission: str, bucket: str, name: str) -> bool:
    """Whether the account has the permission on an object, or on all objects whose names begin with `name`.

    Source: https://cloud.google.com/storage/docs/managed-folders
    """
    return any(
        permission in TABLE["roles"][role].get("permissions", ())
        for grantee, role, kind, on in grants()
        if grantee == account
        and (
            kind == "project"
            or (kind == "bucket" and on == bucket)
            or (kind == "folder" and f"{bucket}/{name}".startswith(on))
            or (kind == "object" and f"{bucket}/{name}" == on)
        )
    )


@pytest.mark.parametrize(("team", "other"), [TEAMS, TEAMS[::-1]])
def test_members_drop_only_into_their_own_teams_folders(team: str, other: str) -> None:
    group = f"group:{team}@example.com"
    for folder in ("requests", "rules", "templates"):
        assert may(group, CREATE, "inbox", f"{folder}/{team}/x.yaml")
        assert not any(may(group, each, "inbox", f"{folder}/{other}/x.yaml") for each in (READ, *WRITE))
        assert not any(may(group, each, "inbox", f"{folder}/x.yaml") for each in (READ, *WRITE))
    for bucket in ("data", "models", "champions"):
        assert may(group, READ, bucket, f"{team}/x")
        assert not any(may(group, each, bucket, f"{other}/x") for each in (READ, LIST, *WRITE))
    for bucket in ("models", "champions"):
        assert not any(may(group, each, bucket, f"{team}/x") for each in WRITE)
    assert not any(may(group, each, "ledger", "runs/x.json") for each in WRITE)


def test_functions_that_submit_jobs_may_act_as_every_teams_account_and_a_team_as_no_account() -> None:
    acting: dict[str, set[str]] = {}
    for account, role, kind, name in grants():
        if (kind, role) == ("account", "roles/iam.serviceAccountUser"):
            acting.setdefault(name, set()).add(account)
    assert acting["trainer-vision"] == acting["trainer-speech"] == acting["trainer"]
    assert not any(each.startswith("trainer") for accounts in acting.values() for each in accounts)


def test_a_team_may_read_the_object_beside_its_folder_and_no_other_of_the_bucket() -> None:
    """TensorFlow looks for it on the way to a new folder, and stops there."""
    assert may("trainer-vision", READ, "models", "vision")
    assert not any(may("trainer-vision", each, "models", "vision") for each in (LIST, *WRITE))
    assert not any(
        may("trainer-vision", READ, "models", name) for name in ("speech", "vision2", "vision-2/x")
    )
    text = (TERRAFORM / "accounts.tf").read_text()
    assert (
        "resource.name == 'projects/_/buckets/${local.every_bucket[each.value.name]}/objects/${each.value.object}'"
        in text
    )


def test_a_teams_topic_is_created_and_calls_the_function_of_requests() -> None:
    deployed = plan("vision")
    assert deployed["topics"]["requests-vision"] == "trainmaster-requests-vision"
    trigger = deployed["triggers"]["on-request-published-vision"]
    assert (trigger["function"], trigger["topic_role"]) == ("on-request-published", "requests-vision")


def test_the_local_stack_grants_teams_the_same() -> None:
    """All but members, who are not principals of the local stack."""
    topology = read_topology(TERRAFORM.parent / "topology.yaml", project=PROJECT, region=REGION)
    path = TERRAFORM.parent / "permissions.yaml"
    local = set(grants_of(topology, path, TEAMS).granted) - set(grants_of(topology, path).granted)
    deployed = plan(*TEAMS)

    def resource(kind: str, name: str) -> str:
        match kind:
            case "project":
                return f"projects/{PROJECT}"
            case "account":
                return f"projects/{PROJECT}/serviceAccounts/tm-{name}@{PROJECT}.iam.gserviceaccount.com"
            case _:
                return f"projects/_/buckets/{deployed['buckets'][name]}"

    assert local == {
        Grant(
            member=f"serviceAccount:tm-{each['account']}@{PROJECT}.iam.gserviceaccount.com",
            role=each["role"],
            resource=resource(kind, each["name"]),
            folder=each.get("folder", ""),
            object=each.get("object", ""),
        )
        for kind, of_kind in deployed["grants"].items()
        for key, each in of_kind.items()
        if key not in plan()["grants"][kind] and not each["account"].startswith("group:")
    }


def test_the_local_stack_knows_the_teams_of_a_policy(tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("teams: {vision: {}, speech: {requests_topic: requests-speech}}\n")
    assert read_teams(policy) == {"vision": None, "speech": "requests-speech"}
    for text in ("teams: [vision]\n", "- teams\n", "teams: {vision: [\n", ""):
        policy.write_text(text)
        assert read_teams(policy) == {}
    assert read_teams(tmp_path / "missing.yaml") == {}


def test_the_policys_teams_are_terraforms_variable_and_their_accounts_are_the_deployments(
    tmp_path: Path,
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "teams:\n  vision: {members: [group:v@example.com], images: [a]}\n"
        "  speech: {requests_topic: trainmaster-requests-speech}\n"
    )
    assert team_settings(policy) == {
        "vision": {"members": ["group:v@example.com"]},
        "speech": {"requests_topic": "trainmaster-requests-speech"},
    }
    policy.write_text("schema: policy.v1\n")
    assert team_settings(policy) == {}
    assert names_of(PROJECT, REGION).teams == {}
