"""Everything that prevents a deployment is reported at once, and nothing is created."""

import sys
from pathlib import Path

import pytest

from tests.deploy.cloud import FAKES, PROJECT, REGION, STATE, Cloud, Ran, managed
from trainmaster.deploy.names import SETTINGS, building_regions, setting, training_regions
from trainmaster.deploy.up import REFUSED

pytestmark = pytest.mark.slow


@pytest.fixture
def cloud(tmp_path: Path) -> Cloud:
    return Cloud(tmp_path)


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
    message = refused(cloud.up(region="us-east7"))
    assert "--region is 'us-east7'" in message
    assert all(region in message for region in training_regions())


@pytest.mark.parametrize("project", ["Upper", "a; rm -rf /"])
def test_what_can_be_no_project_id_is_refused(cloud: Cloud, project: str) -> None:
    message = refused(cloud.up(project=project))
    assert f"--project is {project!r}" in message
    assert message.count("refused: ") == 1


def test_a_bucket_in_another_location_is_refused(cloud: Cloud) -> None:
    cloud.has_bucket(f"{PROJECT}-inbox", location="us-central1")
    message = refused(cloud.up())
    assert f"bucket '{PROJECT}-inbox' is in 'us-central1', and triggers need it in 'europe-west4'" in message
    assert "deploy with --region us-central1, or move its objects" in message


def test_a_bucket_in_many_regions_is_refused_and_none_of_them_offered_for_the_deployment(
    cloud: Cloud,
) -> None:
    cloud.has_bucket(f"{PROJECT}-inbox", location="eu")
    assert "is in 'eu', and triggers need it in 'europe-west4': move its objects" in refused(cloud.up())


def test_a_deployment_cannot_be_moved_to_another_region(cloud: Cloud) -> None:
    cloud.has_state(managed("google_storage_bucket", name=f"{PROJECT}-inbox"))
    cloud.has_bucket(f"{PROJECT}-inbox")
    assert "is in 'europe-west4'" in refused(cloud.up(region="us-central1"))


def test_a_bucket_of_another_project_is_refused(cloud: Cloud) -> None:
    cloud.has_bucket(f"{PROJECT}-data", number="8")
    cloud.content["forbidden"] = [f"{PROJECT}-models"]
    message = refused(cloud.up())
    assert f"bucket '{PROJECT}-data' belongs to project number 8" in message
    assert f"bucket '{PROJECT}-models' exists, and you may not see it" in message


TAKEN: dict[str, tuple[dict[str, object], str]] = {
    "pubsub topics": ({"name": f"projects/{PROJECT}/topics/trainmaster-ticks"}, "topic 'trainmaster-ticks'"),
    "pubsub subscriptions": ({"name": "projects/p/subscriptions/trainmaster-dead-letters"}, "subscription '"),
    "logging sinks": ({"name": "trainmaster-job-logs"}, "log sink 'trainmaster-job-logs'"),
    "logging metrics": ({"name": "trainmaster/ends"}, "log metric 'trainmaster/ends'"),
    "run services": ({"metadata": {"name": "on-tick"}}, "Cloud Run service 'on-tick'"),
    "eventarc triggers": (
        {"name": "projects/p/locations/r/triggers/on-alert"},
        "Eventarc trigger 'on-alert'",
    ),
    "scheduler jobs": (
        {"name": "projects/p/locations/r/jobs/trainmaster-tick"},
        "schedule 'trainmaster-tick'",
    ),
    "artifacts repositories": (
        {"name": "projects/p/locations/r/repositories/trainmaster"},
        "repository 'trainmaster'",
    ),
    "iam service-accounts": (
        {"email": f"tm-trainer@{PROJECT}.iam.gserviceaccount.com"},
        "service account 'tm-trainer@",
    ),
    "iam roles": (
        {"name": f"projects/{PROJECT}/roles/trainmaster_jobs", "title": "Jobs"},
        "role 'trainmaster_jobs'",
    ),
}


def test_names_that_other_resources_use_are_refused(cloud: Cloud) -> None:
    cloud.content["lists"] = {kind: [thing] for kind, (thing, _) in TAKEN.items()}
    message = refused(cloud.up())
    for _, told in TAKEN.values():
        assert f"refused: {told}" in message
    assert message.count("was not created by Trainmaster") == len(TAKEN)


def test_a_role_that_was_deleted_is_refused_with_the_command_that_brings_it_back(cloud: Cloud) -> None:
    deleted = {
        "name": f"projects/{PROJECT}/roles/trainmaster_jobs",
        "title": "Trainmaster jobs",
        "deleted": True,
    }
    cloud.content["lists"] = {"iam roles": [deleted]}
    assert f"`gcloud iam roles undelete trainmaster_jobs --project={PROJECT}`" in refused(cloud.up())


def test_a_foreign_metric_with_the_same_last_word_is_not_a_collision(cloud: Cloud) -> None:
    cloud.content["lists"] = {"logging metrics": [{"name": "shop/ends"}, {"name": "waits"}]}
    assert cloud.up("--check").status == 0


def test_deployed_resources_are_not_called_collisions_when_the_state_cannot_be_read(
    cloud: Cloud,
) -> None:
    cloud.has_state(managed("google_pubsub_topic", name="trainmaster-ticks"))
    cloud.content["lists"] = {"pubsub topics": [{"name": f"projects/{PROJECT}/topics/trainmaster-ticks"}]}
    cloud.content["forbidden"] = [STATE]
    message = refused(cloud.up())
    assert "the existing resources could not be determined" in message
    assert "storage.objects.get" in message
    assert "rename or delete" not in message


def test_a_region_without_cloud_scheduler_is_refused_with_the_setting_that_helps(cloud: Cloud) -> None:
    cloud.content["lacking"] = {"scheduler jobs": REGION}
    message = refused(cloud.up())
    assert f"Location '{REGION}' is not a valid location" in message
    assert 'scheduler_region = "…" in trainmaster.tfvars' in message


@pytest.mark.parametrize(
    ("text", "region"),
    [
        ('kms_key = null\n  scheduler_region   = "europe-west1" # near\n', "europe-west1"),
        ('# scheduler_region = "europe-west1"\n', None),
        ("scheduler_region = null\n", None),
        ("my_scheduler_region = 3", None),
        ("scheduler_region=7", "7"),
    ],
)
def test_settings_are_read_as_terraform_reads_them(tmp_path: Path, text: str, region: str | None) -> None:
    settings = tmp_path / SETTINGS
    assert setting("scheduler_region", settings) is None
    settings.write_text(text)
    assert setting("scheduler_region", settings) == region


def test_a_region_where_some_projects_may_not_build_gets_a_warning_with_the_repairs(cloud: Cloud) -> None:
    ran = cloud.up("--check")
    assert ran.status == 0
    assert f"warning: some projects may not run builds in '{REGION}'" in ran.err
    assert all(region in ran.err for region in building_regions())
    assert f'build_worker_pool = "projects/P/locations/{REGION}/workerPools/W" in {SETTINGS}' in ran.err


def test_a_region_where_every_project_may_build_gets_none(cloud: Cloud) -> None:
    assert cloud.up("--check", region="us-central1").err == ""


def test_a_deployment_with_its_own_pool_gets_none(cloud: Cloud) -> None:
    pool = f"projects/{PROJECT}/locations/{REGION}/workerPools/own"
    (cloud.folder / SETTINGS).write_text(f'build_worker_pool = "{pool}"\n')
    assert "may not run builds" not in cloud.up("--check").err


def test_every_reason_is_reported_at_once(cloud: Cloud) -> None:
    cloud.content["credentials"] = False
    cloud.content["projects"][PROJECT]["billing"] = False
    cloud.has_bucket(f"{PROJECT}-inbox", location="us-central1")
    cloud.content["lists"] = {"logging sinks": [{"name": "trainmaster-job-logs"}]}
    cloud.terraform["version"] = "1.3.0"
    message = refused(cloud.up(region="mars-north1"))
    assert message.count("refused: ") == 6
    assert "terraform 1.3.0 is too old" in message
    assert "gcloud auth application-default login" in message


def test_a_missing_login_is_not_taken_for_a_missing_project(cloud: Cloud) -> None:
    cloud.content["login"] = cloud.content["credentials"] = False
    message = refused(cloud.up())
    assert message.count("refused: ") == 2
    assert "gcloud auth application-default login" in message
    assert "refused: gcloud has no login that works" in message
    assert "run `gcloud auth login`" in message
    assert "does not exist" not in message
    assert "gcloud projects create" not in message


def test_a_missing_gcloud_is_refused_alone(cloud: Cloud) -> None:
    programs = cloud.folder / "programs"
    programs.mkdir()
    (programs / "terraform").symlink_to(FAKES / "terraform")
    (programs / "python3").symlink_to(sys.executable)
    message = refused(cloud.up(path=str(programs)))
    assert message.count("refused: ") == 1
    assert "gcloud is not on PATH" in message


def test_what_may_not_be_listed_is_refused(cloud: Cloud) -> None:
    cloud.content["lists"] = {"pubsub topics": {"error": "no list"}}
    assert "the existing resources could not be determined" in refused(cloud.up())
