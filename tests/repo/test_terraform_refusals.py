"""What stands in the way of a deployment is told whole, and nothing is created."""

from pathlib import Path

import pytest

from deploy.names import training_regions
from deploy.up import REFUSED
from tests.repo.cloud import PROJECT, Cloud, Ran, managed


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


TAKEN: dict[str, tuple[dict[str, object], str]] = {
    "pubsub topics": ({"name": f"projects/{PROJECT}/topics/trainmaster-ticks"}, "topic 'trainmaster-ticks'"),
    "pubsub subscriptions": ({"name": "projects/p/subscriptions/trainmaster-dead-letters"}, "subscription '"),
    "logging sinks": ({"name": "trainmaster-job-logs"}, "log sink 'trainmaster-job-logs'"),
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
    "iam roles": ({"name": f"projects/{PROJECT}/roles/trainmaster_jobs"}, "role 'trainmaster_jobs'"),
}


def test_names_that_somebody_else_took_are_refused(cloud: Cloud) -> None:
    cloud.content["lists"] = {kind: [thing] for kind, (thing, _) in TAKEN.items()}
    said = refused(cloud.up())
    for _, told in TAKEN.values():
        assert f"refused: {told}" in said
    assert said.count("no deployment of Trainmaster made it") == len(TAKEN)


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
