"""What CI may do: jobs of one repository and its environments, each as an account with its own grants; nothing unless asked."""

import json
from pathlib import Path

import pytest

from tests.deploy.cloud import PROJECT, REGION, Cloud, terraform_said
from tests.deploy.hcl import bare, block
from tests.deploy.plan import NUMBER, TERRAFORM_BINARY, plan
from tests.judges.infrastructure import bodies
from trainmaster.deploy.names import CI_POOL, CI_TITLE, ci_roles, names_of, permissions
from trainmaster.deploy.up import REFUSED

needs_terraform = pytest.mark.skipif(TERRAFORM_BINARY is None, reason="terraform is not on PATH")
POOL = (
    f"principalSet://iam.googleapis.com/projects/{NUMBER}/locations/global/workloadIdentityPools/trainmaster"
)
FEW = '{"repository_id": "42"}'
ALL = json.dumps(
    {"repository_id": "42", "environments": {"submit": "main", "build": "images", "deploy": "production"}}
)
SETTINGS = """\
ci = {
  repository_id = "42"
  environments = {
    submit   = "main"  # build = "not"
    "deploy" : "production"
  }
}
"""


def grants(*teams: str, ci: str = ALL) -> dict[str, set[str]]:
    """By account of CI, the role and the thing of each grant."""
    found: dict[str, set[str]] = {}
    for kind, each in plan(*teams, ci=ci)["grants"].items():
        for grant in (one for one in each.values() if one["account"].startswith("ci-")):
            role = grant["role"].rpartition("/")[2]
            found.setdefault(grant["account"], set()).add(f"{role} on {kind} {grant['name']}")
    return found


@needs_terraform
def test_a_job_acts_as_an_account_by_the_number_of_its_repository_and_its_environment() -> None:
    made = plan(ci=ALL)
    (pool,) = made["ci_pools"].values()
    assert pool["condition"].split(" && ") == [
        "assertion.repository_id == '42'",
        "assertion.event_name != 'pull_request_target'",
    ]
    assert {"attribute.repository_id", "attribute.environment"} < set(pool["mapping"])
    assert pool["mapping"]["attribute.environment"].startswith("assertion.repository_id + '/' + ")
    assert made["ci_principals"] == {
        "plan": f"{POOL}/attribute.repository_id/42",
        "submit": f"{POOL}/attribute.environment/42/main",
        "build": f"{POOL}/attribute.environment/42/images",
        "deploy": f"{POOL}/attribute.environment/42/production",
    }


@needs_terraform
def test_each_account_may_do_its_own_work_and_none_exists_unless_it_is_asked_for() -> None:
    reads = {"storage.objectViewer on bucket ledger", "storage.objectViewer on bucket inbox"}
    assert grants() == {
        "ci-plan": reads,
        "ci-submit": {
            *("storage.objectViewer on bucket ledger", "storage.objectViewer on bucket models"),
            *("storage.objectUser on bucket inbox", "storage.objectUser on bucket data"),
            "pubsub.publisher on topic requests",
        },
        "ci-build": {
            *("cloudbuild.builds.editor on project all", "serviceusage.serviceUsageConsumer on project all"),
            *("storage.objectUser on bucket builds", "trainmaster_buckets on bucket builds"),
            "iam.serviceAccountUser on account build",
        },
        "ci-deploy": {f"{role.rpartition('/')[2]} on project all" for role in permissions()["deployer"]},
    }
    assert grants(ci=FEW) == {"ci-plan": reads}
    assert grants("vision")["ci-submit"] == {"storage.objectViewer on bucket ledger"}
    made = plan()
    assert (made["ci_pools"], made["ci_principals"], grants(ci="null")) == ({}, {}, {})
    assert not [name for name in made["accounts"] if name.startswith("ci-")]


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


def test_the_settings_say_which_accounts_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trainmaster.tfvars").write_text(SETTINGS)
    assert ci_roles() == ("plan", "submit", "deploy")
    assert f"tm-ci-deploy@{PROJECT}.iam.gserviceaccount.com" in names_of(PROJECT, REGION).accounts.values()
    (tmp_path / "trainmaster.tfvars").write_text("ci = null\n")
    assert (ci_roles(), names_of(PROJECT, REGION).pools) == ((), {})


@pytest.mark.slow
def test_a_pool_that_an_earlier_undeploy_left_is_taken_over_and_another_is_not(tmp_path: Path) -> None:
    assert bare(block("google_iam_workload_identity_pool", "ci")["display_name"]) == CI_TITLE
    (tmp_path / "trainmaster.tfvars").write_text(SETTINGS)
    cloud = Cloud(tmp_path)
    pool = {"name": f"projects/1/locations/global/workloadIdentityPools/{CI_POOL}", "displayName": CI_TITLE}
    cloud.content["lists"]["iam workload-identity-pools"] = [pool]
    (applied,) = terraform_said(cloud.up(), "apply")
    assert '-var=kept_pools=["trainmaster"]' in applied
    undelete = (
        f"`gcloud iam workload-identity-pools undelete trainmaster --location=global --project={PROJECT}`"
    )
    for key, value, said in (
        ("state", "DELETED", undelete),
        ("displayName", "other", "'trainmaster' already exists"),
    ):
        cloud.content["lists"]["iam workload-identity-pools"] = [{**pool, key: value}]
        ran = cloud.up()
        assert (ran.status, ran.changes) == (REFUSED, [])
        assert said in ran.err
