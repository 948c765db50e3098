"""Policies of an organisation: those that stop a deployment are found before it, each with its repair."""

from dataclasses import replace

import pytest

from tests.deploy.cloud import PROJECT, REGION, ROOT, Cloud
from trainmaster.deploy.names import SETTINGS, names_of
from trainmaster.deploy.organisation import FAULTS, WARNINGS, policy_from
from trainmaster.deploy.up import REFUSED

pytestmark = pytest.mark.slow
SOFT_DELETE, KEYS, POOLS, MEMBERS = {**FAULTS, **WARNINGS}
KEY = f"projects/{PROJECT}/locations/{REGION}/keyRings/r/cryptoKeys/k"
POOL = f"projects/{PROJECT}/locations/{REGION}/workerPools/own"


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
        ({"allowedValues": ["in:short-periods"]}, None),
        ({"allowedValues": ["in:short-periods"], "deniedValues": ["0"]}, False),
        ({"deniedValues": ["in:short-periods"]}, None),
        ({}, True),
    ],
)
def test_a_policy_allows_what_it_lists(listed: dict[str, object], *, allows: bool | None) -> None:
    assert policy_from({"constraint": SOFT_DELETE, "listPolicy": listed}).allows("0") is allows


@pytest.mark.parametrize(
    ("listed", "allows"),
    [
        ({"allowedValues": [POOL]}, True),
        ({"allowedValues": [f"is:{POOL}"]}, True),
        ({"allowedValues": [f"under:projects/{PROJECT}", "under:organizations/1"]}, True),
        ({"allowedValues": [f"under:projects/{PROJECT}-2", POOL.replace("own", "other")]}, False),
        ({"allowedValues": [POOL.replace("own", "other"), "under:organizations/1"]}, None),
        ({"allowedValues": ["under:folders/1"]}, None),
        ({"allowedValues": ["under:projects/4711"]}, None),
        ({"allowedValues": ["projects/4711/locations/us-central1/workerPools/own"]}, None),
        ({"allowedValues": [POOL], "deniedValues": [f"under:projects/{PROJECT}"]}, False),
        ({"allowedValues": [POOL], "deniedValues": ["under:folders/1"]}, None),
        ({"allowedValues": ["under:folders/1"], "deniedValues": ["under:folders/2"]}, None),
    ],
)
def test_a_policy_allows_the_pools_under_a_project_that_it_lists(
    listed: dict[str, object], *, allows: bool | None
) -> None:
    assert policy_from({"constraint": POOLS, "listPolicy": listed}).allows(POOL) is allows


def test_a_pool_that_the_policy_excludes_is_refused_with_those_that_it_allows(cloud: Cloud) -> None:
    (cloud.folder / SETTINGS).write_text(f'build_worker_pool = "{POOL}"\n')
    cloud.content["policies"] = {POOLS: {"allowedValues": ["under:projects/shared-builds"]}}
    ran = cloud.up("--check")
    assert ran.status == REFUSED
    assert (
        f"refused: {POOLS}: the functions may not be built in {POOL}; allowed: under:projects/shared-builds: name"
        in ran.err
    )
    cloud.content["policies"] = {POOLS: {"allValues": "DENY"}}
    assert f"may not be built in {POOL}: name" in cloud.up("--check").err


def test_a_pool_that_only_the_organisation_can_judge_gets_a_warning(cloud: Cloud) -> None:
    (cloud.folder / SETTINGS).write_text(f'build_worker_pool = "{POOL}"\n')
    other = "projects/shared-builds/locations/us-central1/workerPools/w"
    cloud.content["policies"] = {POOLS: {"allowedValues": [other, "under:organizations/1"]}}
    ran = cloud.up("--check")
    assert ran.status == 0
    assert (
        f"warning: {POOLS}: only your organisation knows whether the functions may be built in {POOL}"
        in ran.err
    )
    assert f"allowed: {other}, under:organizations/1" in ran.err
    cloud.content["policies"] = {POOLS: {"allowedValues": [f"under:projects/{PROJECT}"]}}
    assert "only your organisation knows" not in cloud.up("--check").err


def test_the_guide_lists_every_policy() -> None:
    guide = (
        (ROOT / "docs/reference/deployment.md")
        .read_text()
        .split("### Organisation policies", 1)[1]
        .split("\n## ")[0]
    )
    assert all(name.removeprefix("constraints/") in guide for name in (*FAULTS, *WARNINGS))
