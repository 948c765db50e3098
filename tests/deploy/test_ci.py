"""What CI may do: jobs of one repository and its environments, each as an account with its own grants; and nothing unless asked."""

import json
from pathlib import Path

import pytest

from tests.deploy.cloud import PROJECT, Cloud, managed, terraform_said
from tests.deploy.hcl import bare, block
from tests.deploy.plan import NUMBER, TERRAFORM_BINARY, plan
from tests.judges.infrastructure import bodies
from trainmaster.deploy.names import CI_POOL, CI_TITLE, ci_roles, names_of, permissions
from trainmaster.deploy.up import REFUSED

needs_terraform = pytest.mark.skipif(TERRAFORM_BINARY is None, reason="terraform is not on PATH")
ALL = json.dumps(
    {"repository_id": "42", "environments": {"submit": "main", "build": "images", "deploy": "production"}}
)
POOL = (
    f"principalSet://iam.googleapis.com/projects/{NUMBER}/locations/global/workloadIdentityPools/trainmaster"
)


def grants(*teams: str, ci: str = ALL) -> set[tuple[str, str, str]]:
    """Account, role and thing of every grant to an account of CI."""
    return {
        (grant["account"], grant["role"].rpartition("/")[2], f"{kind} {grant['name']}")
        for kind, each in plan(*teams, ci=ci)["grants"].items()
        for grant in each.values()
        if grant["account"].startswith("ci-")
    }


@needs_terraform
def test_a_job_acts_as_an_account_by_the_number_of_its_repository_and_its_environment() -> None:
    made = plan(ci=ALL)
    (pool,) = made["ci_pools"].values()
    assert pool["condition"].split(" && ") == [
        "assertion.repository_id == '42'",
        "assertion.event_name != 'pull_request_target'",
    ]
    assert made["ci_principals"] == {
        "plan": f"{POOL}/attribute.repository_id/42",
        "submit": f"{POOL}/attribute.environment/42/main",
        "build": f"{POOL}/attribute.environment/42/images",
        "deploy": f"{POOL}/attribute.environment/42/production",
    }
    used = {each.removeprefix(f"{POOL}/").partition("/")[0] for each in made["ci_principals"].values()}
    assert used < set(pool["mapping"]), "an attribute that no token is mapped to"
    assert pool["mapping"]["attribute.environment"].startswith("assertion.repository_id + '/' + ")
    assert not any("assertion.repository " in each for each in (pool["condition"], *pool["mapping"].values()))


@needs_terraform
def test_each_account_may_do_its_own_work_and_only_one_that_deploys_may_do_more() -> None:
    reads = {("ci-plan", "storage.objectViewer", f"bucket {name}") for name in ("ledger", "inbox")}
    builds = {
        ("ci-build", "cloudbuild.builds.editor", "project all"),
        ("ci-build", "serviceusage.serviceUsageConsumer", "project all"),
        ("ci-build", "iam.serviceAccountUser", "account build"),
        ("ci-build", "storage.objectUser", "bucket builds"),
        ("ci-build", "trainmaster_buckets", "bucket builds"),
    }
    submits = {
        ("ci-submit", "storage.objectViewer", "bucket ledger"),
        ("ci-submit", "storage.objectViewer", "bucket models"),
        ("ci-submit", "storage.objectUser", "bucket inbox"),
        ("ci-submit", "storage.objectUser", "bucket data"),
        ("ci-submit", "pubsub.publisher", "topic requests"),
    }
    deploys = {("ci-deploy", role.rpartition("/")[2], "project all") for role in permissions()["deployer"]}
    assert grants() == reads | builds | submits | deploys
    assert grants(ci='{"repository_id": "42"}') == reads
    of_teams = {grant for grant in grants("vision") if grant[0] in ("ci-plan", "ci-submit")}
    assert of_teams == {(name, "storage.objectViewer", "bucket ledger") for name in ("ci-plan", "ci-submit")}


@needs_terraform
def test_nothing_of_it_exists_unless_it_is_asked_for() -> None:
    made = plan()
    assert (made["ci_pools"], made["ci_principals"]) == ({}, {})
    assert not [name for name in made["accounts"] if name.startswith("ci-")]
    assert grants(ci="null") == set()


@needs_terraform
@pytest.mark.slow(seconds=2)
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"repository_id": "octo/flowers"}, "ci.repository_id is the repository's number"),
        ({"repository_id": "1", "environments": {"plan": "x"}}, "for submit, build and deploy only"),
        ({"repository_id": "1", "environments": {"submit": "a/b"}}, "has 1 to 100 letters, digits"),
        ({"repository_id": "1", "environments": {"submit": "x", "deploy": "x"}}, "is another one"),
    ],
)
def test_a_setting_that_would_let_others_in_is_refused(given: object, said: str) -> None:
    with pytest.raises(AssertionError) as refused:
        bodies(ci=json.dumps(given))
    assert said in " ".join(str(refused.value).replace("│", " ").split())


SETTINGS = """\
alert_emails = ["me@example.com"]
ci = {
  repository_id = "42"
  environments = {
    submit   = "main"  # build = "not"
    "deploy" : "production"
  }
}
"""


def test_the_settings_say_which_accounts_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trainmaster.tfvars").write_text(SETTINGS)
    assert ci_roles() == ("plan", "submit", "deploy")
    names = names_of(PROJECT, "europe-west4")
    assert {f"tm-ci-{role}@{PROJECT}.iam.gserviceaccount.com" for role in ci_roles()} <= names.taken[
        "service account"
    ]
    (tmp_path / "trainmaster.tfvars").write_text("ci = null\n")
    assert (ci_roles(), names_of(PROJECT, "europe-west4").pools) == ((), {})


def test_the_pool_is_recognised_by_the_title_that_terraform_gives_it() -> None:
    assert bare(block("google_iam_workload_identity_pool", "ci")["display_name"]) == CI_TITLE


@pytest.fixture
def cloud(tmp_path: Path) -> Cloud:
    (tmp_path / "trainmaster.tfvars").write_text(SETTINGS)
    return Cloud(tmp_path)


def has_pool(cloud: Cloud, **more: str) -> None:
    pool = {
        "name": f"projects/4711/locations/global/workloadIdentityPools/{CI_POOL}",
        "displayName": CI_TITLE,
    }
    cloud.content["lists"]["iam workload-identity-pools"] = [{**pool, **more}]


@pytest.mark.slow
def test_a_pool_that_an_earlier_undeploy_left_is_taken_over_and_one_that_is_not_ours_is_not(
    cloud: Cloud,
) -> None:
    has_pool(cloud)
    ran = cloud.up()
    assert ran.status == 0, ran.err
    (applied,) = terraform_said(ran, "apply")
    assert '-var=kept_pools=["trainmaster"]' in applied
    for more, said in (
        ({"state": "DELETED"}, f"`gcloud iam workload-identity-pools undelete trainmaster --location=global --project={PROJECT}`"),
        ({"displayName": "other"}, "workload identity pool 'trainmaster' already exists"),
    ):  # fmt: skip
        has_pool(cloud, **more)
        ran = cloud.up()
        assert (ran.status, ran.changes) == (REFUSED, [])
        assert said in ran.err


@pytest.mark.slow
def test_undeploying_leaves_the_pool_and_removes_what_jobs_may_do(cloud: Cloud) -> None:
    cloud.has_state(managed("google_iam_workload_identity_pool", workload_identity_pool_id=CI_POOL))
    has_pool(cloud)
    left = [
        f'google_iam_workload_identity_pool.ci["{CI_POOL}"]',
        f'google_iam_workload_identity_pool_provider.ci["{CI_POOL}"]',
    ]
    cloud.terraform["state"] = [*left, 'google_service_account_iam_member.ci["submit"]']
    ran = cloud.down()
    assert ran.status == 0, ran.err
    (forgotten,) = terraform_said(ran, "state rm")
    assert forgotten.split()[2:] == left
    assert "the workload identity pool" in ran.out
    (destroyed,) = terraform_said(ran, "destroy")
    assert "-var=kept_pools=[] " in destroyed
