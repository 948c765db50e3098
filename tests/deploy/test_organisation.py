"""Policies of an organisation: those that stop a deployment are found before it, each with its repair."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.deploy.cloud import PROJECT, REGION, ROOT, Cloud
from trainmaster.deploy.names import SETTINGS, names_of
from trainmaster.deploy.organisation import FAULTS, WARNINGS, policy_from
from trainmaster.deploy.up import REFUSED

pytestmark = pytest.mark.slow
SOFT_DELETE, KEYS, POOLS, MEMBERS = [*FAULTS, *WARNINGS]
KEY = f"projects/{PROJECT}/locations/{REGION}/keyRings/r/cryptoKeys/k"
POOL = f"projects/{PROJECT}/locations/{REGION}/workerPools/own"


@pytest.fixture
def cloud(tmp_path: Path) -> Cloud:
    return Cloud(tmp_path)


def test_policies_that_stop_a_deployment_refuse_it_with_their_repairs(cloud: Cloud) -> None:
    cloud.content["policies"] = {
        SOFT_DELETE: {"allowedValues": ["604800"]},
        KEYS: {"deniedValues": ["is:storage.googleapis.com", "is:bigquery.googleapis.com"]},
        POOLS: {"allowedValues": [f"under:projects/{PROJECT}"]},
    }
    ran = cloud.up()
    assert ran.status == REFUSED
    assert ran.changes == []
    for said in (
        f"{SOFT_DELETE}: no bucket may keep deleted objects for 0 s; allowed: 604800: set soft_delete_s in {SETTINGS}",
        f"{KEYS}: storage must use a key of your own: set kms_key = ",
        f"{POOLS}: the functions may not be built in Cloud Build's own pool",
    ):
        assert f"refused: {said}" in ran.err
    (cloud.folder / SETTINGS).write_text(
        f'kms_key = "{KEY}"\nbuild_worker_pool = "{POOL}"\nsoft_delete_s = 604800 # a week\n'
    )
    assert cloud.up("--check").status == 0


def test_the_bucket_of_the_state_has_the_key_and_the_soft_delete_of_the_settings(cloud: Cloud) -> None:
    (cloud.folder / SETTINGS).write_text(f'kms_key = "{KEY}"\nsoft_delete_s = 604800\n')
    _, authorized, created, *_ = cloud.up().changes
    assert authorized == f"gcloud storage service-agent --authorize-cmek={KEY} --project={PROJECT}"
    assert f"--soft-delete-duration=604800s --default-encryption-key={KEY}" in created


def test_policies_that_may_not_be_read_are_a_warning_and_nothing_else(cloud: Cloud) -> None:
    cloud.content["forbidden"] = ["policies"]
    ran = cloud.up("--check")
    assert ran.status == 0
    assert "warning: the organisation's policies were not checked" in ran.err
    assert ran.err.count("roles/orgpolicy.policyViewer") == 1


def test_a_restriction_of_members_is_a_warning_where_teams_have_any() -> None:
    names = names_of(PROJECT, REGION)
    policy = policy_from({"listPolicy": {"allowedValues": ["C03xgje4y"]}})
    judge = WARNINGS[MEMBERS]
    assert judge(policy, names) == ""
    teams = {"vision": {"members": ["group:vision@example.com"]}}
    said = judge(policy, replace(names, teams=teams))
    assert "only to members of C03xgje4y" in said
    assert "group:vision@example.com" in said
    assert judge(policy_from({"listPolicy": {"allValues": "ALLOW"}}), replace(names, teams=teams)) == ""


@pytest.mark.parametrize(
    ("listed", "allows"),
    [
        ({"allValues": "ALLOW"}, True),
        ({"allValues": "DENY"}, False),
        ({"allowedValues": ["is:0", "604800"]}, True),
        ({"allowedValues": ["604800"]}, False),
        ({"deniedValues": ["0"]}, False),
        ({"deniedValues": ["604800"]}, True),
        ({}, True),
    ],
)
def test_a_policy_allows_what_it_lists(listed: dict[str, object], *, allows: bool) -> None:
    assert policy_from({"constraint": SOFT_DELETE, "listPolicy": listed}).allows("0") is allows


def test_the_guide_lists_every_policy() -> None:
    guide = (
        (ROOT / "docs/how-to/deploy.md")
        .read_text()
        .split("### Organisation policies", 1)[1]
        .split("\n## ")[0]
    )
    assert all(name.removeprefix("constraints/") in guide for name in (*FAULTS, *WARNINGS))
