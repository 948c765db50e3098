"""`make deploy` and `make undeploy`, with scripts in the place of gcloud and terraform on PATH."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.deploy.cloud import NUMBER, PROGRAMS, PROJECT, REGION, ROOT, Cloud, Ran, managed, terraform_said
from tests.deploy.hcl import bare, block, loaded
from tests.processes import run_to_end
from trainmaster.deploy.names import names_of
from trainmaster.deploy.terraform_cli import LOCK, terraform_for
from trainmaster.deploy.up import REFUSED
from trainmaster.orchestrator.core.deployment_names import account_email

pytestmark = pytest.mark.slow


def applied(ran: Ran) -> str:
    """The options of the only `terraform apply`."""
    (options,) = terraform_said(ran, "apply")
    return options


def test_an_empty_project_gets_a_state_bucket_and_then_everything(cloud: Cloud) -> None:
    ran = cloud.up()
    assert ran.status == 0, ran.err
    assert [" ".join(line.split()[:4]) for line in ran.changes] == [
        "gcloud services enable cloudresourcemanager.googleapis.com",
        "gcloud storage buckets create",
        "gcloud storage buckets update",
        "terraform init -input=false -reconfigure",
        "gcloud services enable workloadidentity.googleapis.com",
        "gcloud workload-identity service-agents generate",
        "terraform apply -input=false -auto-approve",
        f"gcloud projects add-iam-policy-binding {PROJECT}",
    ]
    # Terraform itself calls these two.
    assert ran.changes[0].split()[3:] == [
        "cloudresourcemanager.googleapis.com",
        "serviceusage.googleapis.com",
        f"--project={PROJECT}",
    ]
    assert f"-backend-config=bucket={PROJECT}-terraform" in ran.changes[3]
    assert (
        f"-var=project={PROJECT} -var=region={REGION} -var=deployment= -var=kept_buckets={{}} -var=kept_roles=[] "
        "-var=kept_pools=[] -var=kept_accounts=[] -var=foreign_topics=[]" in applied(ran)
    )
    terraform = cloud.folder / ".trainmaster" / "deploy" / f"{PROJECT}-{REGION}" / "terraform"
    (source,) = (each for each in loaded(terraform)["variables.tf"]["variable"] if '"source_dir"' in each)
    assert (terraform / bare(source['"source_dir"']["default"]) / "main.py").is_file()
    assert (terraform / "plan" / "../../topology.yaml").is_file()
    published = json.loads((terraform / "../deployment.json").read_text())
    assert (published["schema"], published["project"], published["region"]) == (
        "deployment.v1",
        PROJECT,
        REGION,
    )
    assert published["buckets"].items() <= names_of(PROJECT, REGION).buckets.items()
    assert "ya29" not in ran.out + ran.err, "a token was shown"


def test_settings_are_read_from_where_the_command_runs_and_hide_no_variable_of_its_own(cloud: Cloud) -> None:
    assert "no trainmaster.tfvars here" in cloud.up().out
    (cloud.folder / "trainmaster.tfvars").write_text('alert_emails = ["me@example.com"]\n')
    ran = cloud.up()
    assert f"-var-file={cloud.folder / 'trainmaster.tfvars'} -var=project={PROJECT}" in applied(ran)
    assert "settings are those of trainmaster.tfvars" in ran.out


def test_a_later_deployment_runs_this_versions_configuration_alone(cloud: Cloud) -> None:
    cloud.up()
    (stale,) = cloud.folder.rglob("functions.tf")
    stale.rename(stale.with_name("gone.tf"))
    assert cloud.up().status == 0
    assert not list(cloud.folder.rglob("gone.tf"))
    assert list(cloud.folder.rglob("functions.tf"))


def test_a_deployment_is_brought_up_to_date(cloud: Cloud) -> None:
    names = names_of(PROJECT, REGION)
    cloud.has_state(
        *(managed("google_storage_bucket", name=name) for name in names.buckets.values()),
        *(managed("google_pubsub_topic", name=name) for name in names.topics.values()),
        *(managed("google_service_account", email=email) for email in names.taken["service account"]),
        *(managed("google_project_iam_custom_role", role_id=name) for name in names.roles),
    )
    for name in names.buckets.values():
        cloud.has_bucket(name)
    cloud.content["lists"] = {
        "pubsub topics": [{"name": f"projects/{PROJECT}/topics/{name}"} for name in names.topics.values()],
        "iam service-accounts": [{"email": email} for email in names.taken["service account"]],
        "iam roles": [role(name, "renamed by hand") for name in names.roles],
    }
    ran = cloud.up()
    assert ran.status == 0, ran.err
    assert [line.split()[1] for line in ran.changes if line.startswith("terraform")] == ["init", "apply"]
    assert "-var=kept_buckets={} -var=kept_roles=[] -var=kept_pools=[] " in applied(ran)
    assert "-var=kept_accounts=[] -var=foreign_topics=[] " in applied(ran)


def test_a_lock_file_of_the_configuration_is_obeyed(
    cloud: Cloud, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.up()
    configuration = tmp_path / "configuration"
    shutil.copytree(ROOT / "trainmaster/deploy/terraform", configuration)
    (configuration / LOCK).write_text("# checksums")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", PROGRAMS + os.pathsep + os.environ["PATH"])
    monkeypatch.setenv("FAKE_CLOUD", str(cloud.folder))
    terraform_for(names_of(PROJECT, REGION), configuration).init()
    assert "-lockfile=readonly" in (cloud.folder / "asked").read_text().splitlines()[-1]


def role(name: str, title: str) -> dict[str, str]:
    """As `gcloud iam roles list` shows one."""
    return {"name": f"projects/{PROJECT}/roles/{name}", "title": title}


def account(name: str, title: str) -> dict[str, str]:
    """As `gcloud iam service-accounts list` shows one."""
    return {"email": account_email(name, PROJECT), "displayName": title}


def test_what_an_earlier_undeploy_left_is_taken_over(cloud: Cloud) -> None:
    """New accounts under their names would have none of the roles that users granted to the old ones."""
    cloud.has_state()
    cloud.has_bucket(f"{PROJECT}-ledger")
    cloud.content["lists"] = {
        "iam roles": [role("trainmaster_jobs", "Trainmaster jobs")],
        "iam service-accounts": [
            account("trainer", "Trainmaster: training jobs whose request has no service_account"),
            account("on-tick", "Trainmaster: the function on-tick"),
            {
                "email": f"shop@{PROJECT}.iam.gserviceaccount.com",
                "displayName": "Trainmaster: not one of ours",
            },
        ],
    }
    ran = cloud.up()
    assert ran.status == 0, ran.err
    for kept in (
        f'-var=kept_buckets={{"ledger": "{PROJECT}-ledger"}}',
        '-var=kept_roles=["trainmaster_jobs"]',
        '-var=kept_accounts=["on-tick", "trainer"]',
    ):
        assert kept in applied(ran)
    for kept in (f"bucket {PROJECT}-ledger", "role trainmaster_jobs", "account tm-trainer"):
        assert f"{kept} already exists and is kept" in ran.out


def test_terraform_imports_everything_that_undeploy_leaves_and_deploy_takes_over() -> None:
    imported = [each for content in loaded().values() for each in content.get("import", [])]
    found = [(bare(each["to"]), re.findall(r"var\.\w+", each["for_each"])) for each in imported]
    assert dict(found) == {
        "${google_storage_bucket.bucket[each.key]}": ["var.kept_buckets"],
        "${google_project_iam_custom_role.role[each.key]}": ["var.kept_roles"],
        "${google_service_account.account[each.key]}": ["var.kept_accounts"],
        "${google_iam_workload_identity_pool.ci[each.key]}": ["var.kept_pools"],
        "${google_iam_workload_identity_pool_provider.ci[each.key]}": ["var.kept_pools"],
    }


def test_an_account_is_recognised_by_the_title_that_terraform_gives_it() -> None:
    assert bare(block("google_service_account", "account")["display_name"]).startswith(
        "${module.plan.title}: "
    )


def test_a_topic_for_image_pushes_that_others_made_is_used_as_it_is(cloud: Cloud) -> None:
    cloud.content["lists"] = {"pubsub topics": [{"name": f"projects/{PROJECT}/topics/gcr"}]}
    ran = cloud.up()
    assert ran.status == 0, ran.err
    assert '-var=foreign_topics=["images"]' in applied(ran)


def test_checking_and_planning_deploy_nothing(cloud: Cloud) -> None:
    assert cloud.up("--check").changes == []
    cloud.has_state()
    planned = cloud.up("--plan")
    assert [line.split()[1] for line in planned.changes] == ["services", "init", "plan"]
    assert not [line for line in planned.asked if "service-agents" in line or "binding" in line]


def test_a_deployment_that_fails_halfway_says_how_to_continue(cloud: Cloud) -> None:
    cloud.terraform["fails"] = "apply"
    ran = cloud.up()
    assert ran.status == 1
    assert "run the same command again to continue" in ran.err


PULLS_IMAGES = f"service-{NUMBER}@gcp-sa-aiplatform-cc.iam.gserviceaccount.com"


def test_the_agent_that_pulls_images_is_asked_for_before_and_granted_its_role_after_everything_else(
    cloud: Cloud,
) -> None:
    ran = cloud.up()
    enabled, asked, _, granted = ran.changes[-4:]
    assert enabled.endswith(
        "enable workloadidentity.googleapis.com aiplatform.googleapis.com --project=tm-tests"
    )
    assert asked.endswith(f"--service=aiplatform.googleapis.com --location=global --project={NUMBER}")
    assert granted.endswith(
        f"--member=serviceAccount:{PULLS_IMAGES} --role=roles/aiplatform.customCodeServiceAgent --condition=None"
    )
    assert "could not be granted" not in ran.err


@pytest.mark.parametrize(
    "refusal",
    ["PERMISSION_DENIED: Permission 'workloadidentity.serviceAgents.create' denied on resource", None],
)
def test_a_deployment_is_complete_without_that_agent_and_says_so(cloud: Cloud, refusal: str | None) -> None:
    cloud.content |= {"asking_for_agents": refusal, "agents": []}
    ran = cloud.up()
    assert ran.status == 0, ran.err
    assert (
        f"warning: roles/aiplatform.customCodeServiceAgent could not be granted to serviceAccount:{PULLS_IMAGES}"
        in ran.err
    )
    assert "does not exist" in ran.err
    assert (refusal or "Invalid choice") in ran.err
    cloud.content["agents"] = [PULLS_IMAGES]
    assert "could not be granted" not in cloud.up().err, "an agent that exists needs no asking"


STATE_LIST = [
    'google_storage_bucket.bucket["inbox"]',
    'google_storage_bucket.bucket["ledger"]',
    "google_storage_bucket_object.source",
    "google_storage_bucket_object.deployment",
    'google_project_iam_member.agent["pubsub/pubsub.serviceAgent/all"]',
    'google_project_iam_member.project["on-tick/trainmaster_jobs/all"]',
    'google_project_service_identity.agent["eventarc.googleapis.com"]',
    'google_kms_crypto_key_iam_member.agent["gs-project-accounts"]',
    'google_project_iam_custom_role.role["trainmaster_jobs"]',
    'google_service_account.account["on-tick"]',
    'google_service_account.account["trainer-vision"]',
    'google_service_account_iam_member.account["on-tick/iam.serviceAccountUser/trainer"]',
    'google_pubsub_topic.topic["images"]',
    'google_pubsub_topic.topic["ticks"]',
    'google_service_account_iam_member.ci["submit"]',
    'google_iam_workload_identity_pool.ci["trainmaster"]',
    'google_iam_workload_identity_pool_provider.ci["trainmaster"]',
]
DESTROYED = {*STATE_LIST[2:4], STATE_LIST[5], STATE_LIST[11], *STATE_LIST[13:15]}


def deployed(cloud: Cloud) -> None:
    cloud.has_state(managed("google_storage_bucket", name=f"{PROJECT}-inbox"))
    cloud.has_bucket(f"{PROJECT}-inbox")
    cloud.terraform["state"] = STATE_LIST


def test_undeploying_leaves_what_could_not_be_made_again_and_what_others_may_use(cloud: Cloud) -> None:
    deployed(cloud)
    ran = cloud.down()
    assert ran.status == 0, ran.err
    (forgotten,) = terraform_said(ran, "state rm")
    assert set(forgotten.split()[2:]) == set(STATE_LIST) - DESTROYED
    assert [line.split()[1] for line in ran.changes if line.startswith("terraform")] == [
        "init",
        "state",
        "destroy",
    ]
    assert f"gs://{PROJECT}-ledger" in ran.out
    assert "the service accounts tm-… with the roles that others granted them, and the topic gcr" in ran.out


def test_undeploying_again_where_it_stopped_halfway_imports_no_bucket_to_destroy_it(cloud: Cloud) -> None:
    deployed(cloud)
    cloud.terraform["fails"] = "destroy"
    assert cloud.down().status == 1
    cloud.has_state()
    cloud.terraform |= {"state": [STATE_LIST[2]], "fails": None}
    ran = cloud.down()
    assert ran.status == 0, ran.err
    assert "apply" not in [line.split()[1] for line in ran.changes]
    (destroyed,) = terraform_said(ran, "destroy")
    assert "-var=kept_buckets={} -var=kept_roles=[] " in destroyed
    assert "-var=kept_pools=[] -var=kept_accounts=[] " in destroyed


def test_undeploying_removes_the_buckets_on_request(cloud: Cloud) -> None:
    deployed(cloud)
    ran = cloud.down("--delete-buckets")
    assert ran.status == 0, ran.err
    (applied,) = terraform_said(ran, "apply")
    assert "-target=google_storage_bucket.bucket" in applied
    assert "-var=delete_buckets=true" in applied
    (forgotten,) = terraform_said(ran, "state rm")
    assert STATE_LIST[0] not in forgotten
    assert ran.changes[-1] == f"gcloud storage rm --recursive gs://{PROJECT}-terraform"


def test_undeploying_what_is_not_deployed_removes_nothing(cloud: Cloud) -> None:
    ran = cloud.down()
    assert ran.status == REFUSED
    assert ran.changes == []
    assert "nothing was deployed" in ran.err


def test_undeploying_in_the_wrong_region_removes_nothing(cloud: Cloud) -> None:
    deployed(cloud)
    ran = cloud.down(region="us-central1")
    assert ran.status == REFUSED
    assert ran.changes == []
    assert "the deployment is in europe-west4" in ran.err


@pytest.mark.parametrize(("given", "named"), [([], ""), (["DEPLOYMENT=stage"], " --name 'stage'")])
def test_make_passes_its_variables_to_the_command(given: list[str], named: str) -> None:
    message = subprocess.run(
        ["make", "-n", "deploy", f"PROJECT={PROJECT}", f"REGION={REGION}", "CHECK=1", *given],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert f"-m trainmaster deploy --project '{PROJECT}' --region '{REGION}'{named} --check" in message.stdout
    missing = run_to_end(["make", "-n", "deploy"], cwd=ROOT)
    assert missing.returncode != 0
    assert "Set PROJECT and REGION" in missing.stderr


@pytest.mark.parametrize(
    ("given", "deletes"), [([], False), (["BUCKETS=keep"], False), (["BUCKETS=delete"], True)]
)
def test_make_undeploy_deletes_buckets_only_on_request(given: list[str], *, deletes: bool) -> None:
    where = [f"PROJECT={PROJECT}", f"REGION={REGION}"]
    message = run_to_end(["make", "-n", "undeploy", *where, *given], cwd=ROOT)
    assert f"-m trainmaster undeploy --project '{PROJECT}' --region '{REGION}'" in message.stdout
    assert ("--delete-buckets" in message.stdout) == deletes
