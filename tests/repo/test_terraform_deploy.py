"""`make deploy` and `make undeploy`, with scripts in the place of gcloud and terraform on PATH."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from deploy.names import names_of, training_regions
from deploy.up import REFUSED

ROOT = Path(__file__).resolve().parents[2]
FAKES = Path(__file__).resolve().parent / "fake_cloud"
PROJECT, REGION, NUMBER = "tm-tests", "europe-west4", "4711"
STATE = f"gs://{PROJECT}-terraform/trainmaster/default.tfstate"


@dataclass(frozen=True, kw_only=True)
class Ran:
    """What a command answered, and what it asked of gcloud and terraform."""

    status: int
    out: str
    err: str
    asked: tuple[str, ...]

    @property
    def changes(self) -> list[str]:
        """What was asked that changes anything in a project."""
        reading = ("describe", "list", "cat", "print-access-token")
        return [line for line in self.asked if not any(f" {word}" in line for word in reading)]


class Cloud:
    """A project as the scripts tell of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.content: dict[str, Any] = {
            "projects": {PROJECT: {"lifecycleState": "ACTIVE", "projectNumber": NUMBER}},
            "buckets": {},
            "objects": {},
            "lists": {},
            "forbidden": [],
            "disabled": [],
            "credentials": True,
        }
        self.terraform: dict[str, Any] = {"version": "1.11.4", "state": []}

    def has_bucket(self, name: str, *, location: str = REGION, number: str = NUMBER) -> None:
        self.content["buckets"][name] = {"name": name, "location": location.upper(), "projectNumber": number}

    def has_state(self, *resources: Mapping[str, Any]) -> None:
        self.has_bucket(f"{PROJECT}-terraform")
        self.content["objects"][STATE] = json.dumps({"version": 4, "resources": resources})

    def run(self, module: str, *words: str, project: str = PROJECT, region: str = REGION) -> Ran:
        (self.folder / "cloud.json").write_text(json.dumps(self.content))
        (self.folder / "terraform.json").write_text(json.dumps(self.terraform))
        (self.folder / "asked").write_text("")
        ran = subprocess.run(
            [sys.executable, "-m", module, "--project", project, "--region", region, *words],
            cwd=ROOT,
            env={
                **os.environ,
                "PATH": f"{FAKES}{os.pathsep}{os.environ['PATH']}",
                "FAKE_CLOUD": str(self.folder),
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        asked = (self.folder / "asked").read_text().splitlines()
        return Ran(status=ran.returncode, out=ran.stdout, err=ran.stderr, asked=tuple(asked))

    def up(self, *words: str, project: str = PROJECT, region: str = REGION) -> Ran:
        return self.run("deploy.up", *words, project=project, region=region)

    def down(self, *words: str, region: str = REGION) -> Ran:
        return self.run("deploy.down", *words, region=region)


@pytest.fixture
def cloud(tmp_path: Path) -> Cloud:
    return Cloud(tmp_path)


def managed(type_: str, **attributes: str) -> dict[str, Any]:
    return {"mode": "managed", "type": type_, "name": "x", "instances": [{"attributes": attributes}]}


def terraform_said(ran: Ran, word: str) -> list[str]:
    return [line.removeprefix("terraform ") for line in ran.asked if line.startswith(f"terraform {word}")]


def test_an_empty_project_gets_a_state_bucket_and_then_everything(cloud: Cloud) -> None:
    ran = cloud.up()
    assert ran.status == 0, ran.err
    assert [" ".join(line.split()[:4]) for line in ran.changes] == [
        "gcloud storage buckets create",
        "gcloud storage buckets update",
        "terraform init -input=false -reconfigure",
        "terraform apply -input=false -auto-approve",
    ]
    assert f"-backend-config=bucket={PROJECT}-terraform" in ran.changes[2]
    assert (
        f"-var=project={PROJECT} -var=region={REGION} -var=kept_buckets={{}} -var=foreign_topics=[]"
        in ran.changes[3]
    )
    assert (ROOT / "build/functions/main.py").is_file()


def test_no_token_is_shown(cloud: Cloud) -> None:
    ran = cloud.up()
    assert "ya29" not in ran.out + ran.err


def test_a_deployment_is_brought_up_to_date(cloud: Cloud) -> None:
    names = names_of(PROJECT, REGION)
    cloud.has_state(
        *(managed("google_storage_bucket", name=name) for name in names.buckets.values()),
        *(managed("google_pubsub_topic", name=name) for name in names.topics.values()),
        *(managed("google_service_account", email=email) for email in names.taken["service account"]),
    )
    for name in names.buckets.values():
        cloud.has_bucket(name)
    cloud.content["lists"] = {
        "pubsub topics": [{"name": f"projects/{PROJECT}/topics/{name}"} for name in names.topics.values()],
        "iam service-accounts": [{"email": email} for email in names.taken["service account"]],
    }
    ran = cloud.up()
    assert ran.status == 0, ran.err
    assert [line.split()[1] for line in ran.changes] == ["init", "apply"]
    assert "-var=kept_buckets={} -var=foreign_topics=[]" in ran.changes[1]


def test_buckets_that_an_earlier_undeploy_left_are_taken_over(cloud: Cloud) -> None:
    cloud.has_state()
    cloud.has_bucket(f"{PROJECT}-ledger")
    ran = cloud.up()
    assert ran.status == 0, ran.err
    assert f'-var=kept_buckets={{"ledger": "{PROJECT}-ledger"}}' in ran.changes[-1]
    assert f"bucket {PROJECT}-ledger is there already and is kept" in ran.out


def test_a_topic_for_image_pushes_that_others_made_is_used_as_it_is(cloud: Cloud) -> None:
    cloud.content["lists"] = {"pubsub topics": [{"name": f"projects/{PROJECT}/topics/gcr"}]}
    ran = cloud.up()
    assert ran.status == 0, ran.err
    assert '-var=foreign_topics=["images"]' in ran.changes[-1]


def test_a_service_that_is_not_enabled_has_nothing_in_the_way(cloud: Cloud) -> None:
    cloud.content["disabled"] = [
        "run services",
        "eventarc triggers",
        "scheduler jobs",
        "artifacts repositories",
    ]
    assert cloud.up("--check").status == 0


def test_checking_and_planning_deploy_nothing(cloud: Cloud) -> None:
    assert cloud.up("--check").changes == []
    cloud.has_state()
    planned = cloud.up("--plan")
    assert [line.split()[1] for line in planned.changes] == ["init", "plan"]


def refused(ran: Ran) -> str:
    assert ran.status == REFUSED, ran.out + ran.err
    assert ran.changes == []
    assert "Nothing was created" in ran.err
    assert "Traceback" not in ran.err
    return ran.err


def test_a_project_that_is_not_there_is_refused(cloud: Cloud) -> None:
    assert "project 'not-there' does not exist, or you may not see it" in refused(
        cloud.up(project="not-there")
    )


def test_a_project_that_is_being_deleted_is_refused(cloud: Cloud) -> None:
    cloud.content["projects"][PROJECT]["lifecycleState"] = "DELETE_REQUESTED"
    assert f"gcloud projects undelete {PROJECT}" in refused(cloud.up())


def test_a_project_without_billing_is_refused(cloud: Cloud) -> None:
    cloud.content["projects"][PROJECT]["billing"] = False
    assert "has no billing account" in refused(cloud.up())


def test_a_region_without_vertex_ai_is_refused_with_those_that_have_it(cloud: Cloud) -> None:
    said = refused(cloud.up(region="us-east7"))
    assert "REGION is 'us-east7'" in said
    assert all(region in said for region in training_regions())


@pytest.mark.parametrize("project", ["Upper", "a; rm -rf /"])
def test_what_can_be_no_project_id_is_refused(cloud: Cloud, project: str) -> None:
    assert f"PROJECT is {project!r}" in refused(cloud.up(project=project))


def test_a_bucket_in_another_location_is_refused(cloud: Cloud) -> None:
    cloud.has_bucket(f"{PROJECT}-inbox", location="us-central1")
    said = refused(cloud.up())
    assert f"bucket '{PROJECT}-inbox' is in 'us-central1', and triggers need it in 'europe-west4'" in said


def test_a_deployment_cannot_be_moved_to_another_region(cloud: Cloud) -> None:
    cloud.has_state(managed("google_storage_bucket", name=f"{PROJECT}-inbox"))
    cloud.has_bucket(f"{PROJECT}-inbox")
    assert "is in 'europe-west4'" in refused(cloud.up(region="us-central1"))


def test_a_bucket_of_another_project_is_refused(cloud: Cloud) -> None:
    cloud.has_bucket(f"{PROJECT}-data", number="8")
    cloud.content["forbidden"] = [f"{PROJECT}-models"]
    said = refused(cloud.up())
    assert f"bucket '{PROJECT}-data' belongs to project number 8" in said
    assert f"bucket '{PROJECT}-models' exists, and you may not see it" in said


@pytest.mark.parametrize(
    ("listed", "thing", "kind"),
    [
        ("pubsub topics", {"name": f"projects/{PROJECT}/topics/trainmaster-ticks"}, "topic 'trainmaster-ticks'"),
        ("pubsub subscriptions", {"name": "projects/p/subscriptions/trainmaster-dead-letters"}, "subscription"),
        ("logging sinks", {"name": "trainmaster-job-logs"}, "log sink 'trainmaster-job-logs'"),
        ("run services", {"metadata": {"name": "on-tick"}}, "Cloud Run service 'on-tick'"),
        ("eventarc triggers", {"name": "projects/p/locations/r/triggers/on-alert"}, "Eventarc trigger"),
        ("scheduler jobs", {"name": "projects/p/locations/r/jobs/trainmaster-tick"}, "schedule"),
        ("artifacts repositories", {"name": "projects/p/locations/r/repositories/trainmaster"}, "repository"),
        ("iam service-accounts", {"email": f"tm-trainer@{PROJECT}.iam.gserviceaccount.com"}, "service account"),
        ("iam roles", {"name": f"projects/{PROJECT}/roles/trainmaster_jobs"}, "role 'trainmaster_jobs'"),
    ],
)  # fmt: skip
def test_a_name_that_somebody_else_took_is_refused(
    cloud: Cloud, listed: str, thing: dict[str, Any], kind: str
) -> None:
    cloud.content["lists"] = {listed: [thing]}
    said = refused(cloud.up())
    assert kind in said
    assert "no deployment of Trainmaster made it" in said


def test_every_reason_is_told_at_once(cloud: Cloud) -> None:
    cloud.content["credentials"] = False
    cloud.content["projects"][PROJECT]["billing"] = False
    cloud.has_bucket(f"{PROJECT}-inbox", location="us-central1")
    cloud.content["lists"] = {"logging sinks": [{"name": "trainmaster-job-logs"}]}
    cloud.terraform["version"] = "1.3.0"
    said = refused(cloud.up(region="mars-north1"))
    assert said.count("refused: ") == 6
    assert "terraform 1.3.0 is too old" in said
    assert "gcloud auth application-default login" in said


def test_what_may_not_be_listed_is_refused(cloud: Cloud) -> None:
    cloud.content["lists"] = {"pubsub topics": {"error": "no list"}}
    assert "what exists already cannot be told" in refused(cloud.up())


def test_a_deployment_that_fails_halfway_says_how_it_goes_on(cloud: Cloud) -> None:
    cloud.terraform["fails"] = "apply"
    ran = cloud.up()
    assert ran.status == 1
    assert "the same command goes on from there" in ran.err


STATE_LIST = [
    'google_storage_bucket.bucket["inbox"]',
    'google_storage_bucket.bucket["ledger"]',
    "google_storage_bucket_object.source",
    'google_project_iam_member.agent["pubsub/pubsub.serviceAgent/all"]',
    'google_project_iam_member.project["on-tick/trainmaster_jobs/all"]',
    'google_project_service_identity.agent["eventarc.googleapis.com"]',
]


def deployed(cloud: Cloud) -> None:
    cloud.has_state(managed("google_storage_bucket", name=f"{PROJECT}-inbox"))
    cloud.has_bucket(f"{PROJECT}-inbox")
    cloud.terraform["state"] = STATE_LIST


def test_undeploying_leaves_the_buckets_and_what_googles_accounts_may_do(cloud: Cloud) -> None:
    deployed(cloud)
    ran = cloud.down()
    assert ran.status == 0, ran.err
    (forgotten,) = terraform_said(ran, "state rm")
    assert set(forgotten.split()[2:]) == {STATE_LIST[0], STATE_LIST[1], STATE_LIST[3], STATE_LIST[5]}
    assert [line.split()[1] for line in ran.changes if line.startswith("terraform")] == [
        "init",
        "state",
        "destroy",
    ]
    assert f"gs://{PROJECT}-ledger" in ran.out


def test_undeploying_removes_the_buckets_when_told(cloud: Cloud) -> None:
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


def test_make_hands_on_what_it_is_told(cloud: Cloud) -> None:
    said = subprocess.run(
        ["make", "-n", "deploy", f"PROJECT={PROJECT}", f"REGION={REGION}", "CHECK=1"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert f"-m deploy.up --project '{PROJECT}' --region '{REGION}' --check" in said.stdout
    missing = subprocess.run(["make", "-n", "deploy"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert missing.returncode != 0
    assert "Say where" in missing.stderr


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("gcloud") is None, reason="gcloud is not on PATH")
def test_the_real_gcloud_takes_every_command_that_is_asked_of_it(cloud: Cloud, tmp_path: Path) -> None:
    """It has no account here, so it refuses each once it has read it; what it could not read it says first."""
    cloud.up()
    deployed(cloud)
    asked = {
        *cloud.up().asked,
        *cloud.down("--delete-buckets").asked,
        *Cloud(tmp_path).up().asked,
        trigger_update(),
    }
    commands = {line.removeprefix("gcloud ") for line in asked if line.startswith("gcloud ")}
    assert len(commands) > 10
    environment = {
        **os.environ,
        "CLOUDSDK_CONFIG": str(tmp_path / "none"),
        "CLOUDSDK_CORE_DISABLE_PROMPTS": "1",
    }
    environment.pop("GOOGLE_APPLICATION_CREDENTIALS", None)
    for command in sorted(commands):
        ran = subprocess.run(
            ["gcloud", *command.split()],
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        for words in ("unrecognized arguments", "Invalid choice", "Invalid value", "must be specified"):
            assert words not in ran.stderr, command
        assert "account" in ran.stderr.lower() or "credentials" in ran.stderr, ran.stderr


def trigger_update() -> str:
    """The update of a trigger's subscription with every flag that triggers.tf gives it."""
    text = (ROOT / "deploy/terraform/triggers.tf").read_text()
    flags = {line.strip().split("--")[1].split("=")[0] for line in text.splitlines() if '"--' in line}
    values = {
        "project": "p",
        "ack-deadline": "120",
        "expiration-period": "never",
        "min-retry-delay": "10s",
        "max-retry-delay": "600s",
        "message-retention-duration": "86400s",
        "dead-letter-topic": "projects/p/topics/t",
        "max-delivery-attempts": "50",
    }
    assert flags == set(values)
    return "gcloud pubsub subscriptions update x " + " ".join(
        f"--{flag}={values[flag]}" for flag in sorted(flags)
    )
