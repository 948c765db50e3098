"""What CI may do: jobs of one repository and its environments, each as an account with its own grants; nothing unless asked."""

import json
from pathlib import Path

import pytest

from tests.deploy.cloud import PROJECT, REGION, Cloud, Ran, managed, terraform_said
from tests.deploy.hcl import bare, block
from tests.deploy.plan import NUMBER, TERRAFORM_BINARY, plan
from tests.judges.infrastructure import bodies
from trainmaster.deploy.doctor.deployment import deployment_of
from trainmaster.deploy.names import CI_POOLS, ci_roles, names_of, permissions
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
def test_what_is_left_of_a_pool_and_its_provider_is_taken_over_and_what_is_anothers_is_not(tmp_path: Path) -> None:  # fmt: skip
    pool, provider = CI_POOLS
    kinds = ("google_iam_workload_identity_pool", "google_iam_workload_identity_pool_provider")
    assert [bare(block(kind, "ci")["display_name"]) for kind in kinds] == list(CI_POOLS.values())
    (tmp_path / "trainmaster.tfvars").write_text(SETTINGS)
    cloud, folder = Cloud(tmp_path), "projects/1/locations/global/workloadIdentityPools"

    def up(**changes: dict[str, str]) -> Ran:
        cloud.content["lists"] = {
            f"iam workload-identity-pools{' providers' if '/' in id_ else ''}": [
                {"name": f"{folder}/{id_}", "displayName": CI_POOLS[id_], **changes[kind]}
            ]
            for kind, id_ in (("pool", pool), ("provider", provider))
            if kind in changes
        }
        return cloud.up()

    for ran, kept in ((up(pool={}), [pool]), (up(pool={}, provider={}), [pool, provider])):
        (applied,) = terraform_said(ran, "apply")
        assert f"-var=kept_pools={json.dumps(kept)}" in applied
    where, deleted = f"--location=global --project={PROJECT}`", {"state": "DELETED"}
    group = "`gcloud iam workload-identity-pools"
    for ran, said in (
        (up(pool=deleted), f"{group} undelete trainmaster {where}"),
        (
            up(pool={}, provider=deleted),
            f"{group} providers undelete github --workload-identity-pool=trainmaster {where}",
        ),
        (up(pool={"displayName": "other"}), "'trainmaster' already exists"),
    ):
        assert (ran.status, ran.changes, said in ran.err) == (REFUSED, [], True), ran.err
    cloud.has_state(
        *(managed(kind, name=f"{folder}/{id_}") for kind, id_ in zip(kinds, CI_POOLS, strict=True))
    )
    (applied,) = terraform_said(up(pool={}, provider={}), "apply")
    assert "-var=kept_pools=[]" in applied


@needs_terraform
@pytest.mark.parametrize("teams", [(), ("vision",)])
def test_the_self_test_expects_the_grants_that_terraform_makes_for_ci(teams: tuple[str, ...]) -> None:
    topology = Path(__file__).resolve().parents[2] / "trainmaster" / "deploy" / "topology.yaml"
    deployment = deployment_of(project=PROJECT, region=REGION, topology=topology)
    found: dict[str, set[str]] = {}
    for each in deployment.expected_of_ci(("plan", "submit", "build", "deploy"), teams):
        name = each.thing.name.removeprefix(f"{PROJECT}-").removeprefix("trainmaster-")
        name = {"project": "all", "account": "build"}.get(each.thing.kind, name)
        role = each.role.rpartition("/")[2]
        found.setdefault(each.account, set()).add(f"{role} on {each.thing.kind} {name}")
    assert found == grants(*teams)
