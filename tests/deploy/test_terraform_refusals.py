"""Everything that prevents a deployment is reported at once, and nothing is created."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.deploy.cloud import FAKES, PROGRAMS, PROJECT, REGION, STATE, Cloud, Ran, managed
from tests.deploy.hcl import TERRAFORM
from tests.ready_stack import announce
from trainmaster.deploy.names import (
    CONSOLE,
    SETTINGS,
    names_of,
    receiver_settings,
    regions,
    setting,
)
from trainmaster.deploy.preflight import receiver_faults, secret_faults
from trainmaster.deploy.up import REFUSED
from trainmaster.resources import ROOT

pytestmark = pytest.mark.slow


def refused(ran: Ran) -> str:
    assert ran.status == REFUSED, ran.out + ran.err
    assert ran.changes == []
    assert "Nothing was created" in ran.err
    assert "Traceback" not in ran.err
    return ran.err


DELETED_ROLE = {
    "name": f"projects/{PROJECT}/roles/trainmaster_jobs",
    "title": "Trainmaster jobs",
    "deleted": True,
}


@pytest.mark.parametrize(
    ("project", "content", "said"),
    [
        ({"lifecycleState": "DELETE_REQUESTED"}, {}, [f"gcloud projects undelete {PROJECT}"]),
        ({"billing": False}, {}, ["has no billing account"]),
        (
            {},
            {"lists": {"iam roles": [DELETED_ROLE]}},
            [f"`gcloud iam roles undelete trainmaster_jobs --project={PROJECT}`"],
        ),
        (
            {},
            {"lists": {"pubsub topics": {"error": "no list"}}},
            ["the existing resources could not be determined"],
        ),
        (
            {},
            {"lacking": {"scheduler jobs": REGION}},
            [f"Location '{REGION}' is not a valid location", 'scheduler_region = "…" in trainmaster.tfvars'],
        ),
    ],
    ids=["being deleted", "no billing", "a deleted role", "no list of topics", "no schedules in the region"],
)
def test_a_project_that_cannot_be_deployed_to_is_refused(
    cloud: Cloud, project: dict[str, object], content: dict[str, object], said: list[str]
) -> None:
    cloud.content["projects"][PROJECT] |= project
    cloud.content |= content
    message = refused(cloud.up())
    assert [text for text in said if text not in message] == []


@pytest.mark.parametrize(
    ("location", "repair"),
    [
        ("us-central1", ": deploy with --region us-central1, or move its objects"),
        ("eu", ": move its objects"),
    ],
)
def test_a_bucket_in_another_region_is_refused(cloud: Cloud, location: str, repair: str) -> None:
    cloud.has_bucket(f"{PROJECT}-inbox", location=location)
    said = f"bucket '{PROJECT}-inbox' is in '{location}', and triggers need it in 'europe-west4'"
    assert f"{said}{repair}" in refused(cloud.up())
    cloud.has_state(managed("google_storage_bucket", name=f"{PROJECT}-inbox"))
    assert said in refused(cloud.up()), "nor is a deployment moved"


def test_a_shell_whose_gcloud_works_on_a_local_stack_is_refused(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    announce(cloud.folder, {})
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(cloud.folder / "user" / "gcloud"))
    assert "gcloud works on a local stack (CLOUDSDK_CONFIG): use a shell" in refused(ran := cloud.up())
    assert ran.asked == ()


def test_buckets_of_other_projects_are_refused(cloud: Cloud) -> None:
    cloud.has_bucket(f"{PROJECT}-data", number="8")
    cloud.content["forbidden"] = [f"{PROJECT}-models"]
    message = refused(cloud.up())
    assert f"bucket '{PROJECT}-data' belongs to project number 8" in message
    assert f"bucket '{PROJECT}-models' exists, and you may not see it" in message


def test_an_unknown_project_is_refused(cloud: Cloud) -> None:
    message = refused(cloud.up(project="not-there"))
    assert "project 'not-there' does not exist, or you may not see it" in message
    assert message.count("refused: ") == 1


@pytest.mark.parametrize("project", ["Upper", "a; rm -rf ", "a: b", "a\nb"])
def test_what_cannot_be_a_project_is_refused_before_anything_is_asked(cloud: Cloud, project: str) -> None:
    for ran in (cloud.up(project=project), cloud.run("undeploy", project=project)):
        assert (ran.status, ran.asked) == (REFUSED, ())
        assert f"{project!r} is not a project id, which has 6 to 30 lower-case letters" in ran.err


def test_a_region_without_vertex_ai_is_refused_with_those_that_have_it(cloud: Cloud) -> None:
    message = refused(cloud.up(region="us-east7"))
    assert "--region is 'us-east7'" in message
    assert all(region in message for region in regions("training"))


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


def test_a_foreign_service_with_the_name_of_the_console_is_refused_where_that_is_asked_for(cloud: Cloud) -> None:  # fmt: skip
    cloud.content["lists"] = {"run services": [{"metadata": {"name": CONSOLE}}]}
    (cloud.folder / SETTINGS).write_text('console = {\n  image = "x"\n}\n')
    assert f"Cloud Run service '{CONSOLE}' already exists" in refused(cloud.up("--check"))
    cloud.has_state(managed("google_cloud_run_v2_service", name=CONSOLE))
    assert (cloud.up("--check").status, CONSOLE in (TERRAFORM / "console.tf").read_text()) == (0, True)


def test_a_foreign_metric_with_the_same_last_word_is_not_a_collision(cloud: Cloud) -> None:
    cloud.content["lists"] = {"logging metrics": [{"name": "shop/ends"}, {"name": "waits"}]}
    assert cloud.up("--check").status == 0


def test_deployed_resources_are_not_called_collisions_when_the_state_cannot_be_read(cloud: Cloud) -> None:
    cloud.has_state(managed("google_pubsub_topic", name="trainmaster-ticks"))
    cloud.content["lists"] = {"pubsub topics": [{"name": f"projects/{PROJECT}/topics/trainmaster-ticks"}]}
    cloud.content["forbidden"] = [STATE]
    message = refused(cloud.up())
    assert "the existing resources could not be determined" in message
    assert "storage.objects.get" in message
    assert "rename or delete" not in message


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
    assert all(region in ran.err for region in regions("building"))
    assert f'build_worker_pool = "projects/P/locations/{REGION}/workerPools/W" in {SETTINGS}' in ran.err
    assert cloud.up("--check", region="us-central1").err == ""
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


def test_a_wrong_policy_or_settings_file_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    for name in ("trainmaster", "schemas", "functions"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", "web"))
    policy = tmp_path / "functions" / "policy.yaml"
    good = policy.read_text()
    environment = {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}", "PATH": str(FAKES)}

    def said(verb: str) -> str:
        words = f"-m trainmaster {verb} --project {PROJECT} --region {REGION}".split()
        ran = subprocess.run([sys.executable, *words], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False)  # fmt: skip
        unchanged = {"deploy": f"Nothing was created in '{PROJECT}'.", "undeploy": "Nothing was removed."}
        assert (ran.returncode, ran.stderr.splitlines()[-1]) == (REFUSED, unchanged[verb]), ran.stderr
        return ran.stderr

    for verb in ("deploy", "undeploy"):
        policy.write_text("schema: policy.v1\nteams: 5\nconsole: 5\nnotify: [{name: a, webhook: 5}]\n")
        faults = said(verb)
        assert all(f"{policy}:{line}" in faults for line in (2, 3, 4))
        policy.write_text(good)
        (tmp_path / SETTINGS).write_bytes(b'kms_key = "\xff"\n')
        assert f"refused: {SETTINGS} cannot be read as UTF-8" in said(verb)


def test_buckets_and_keys_of_others_that_are_not_there_are_refused_together(cloud: Cloud) -> None:
    keys = [f"projects/p/locations/{REGION}/keyRings/r/cryptoKeys/{name}" for name in ("there", "gone")]
    lists = f'data_buckets = ["there", "gone"] # "no"\n/* job_keys = [\n] */ kms_key = "gs://no"\nwatched_buckets = [\n  "far",\n  "hidden",\n]\njob_keys = {json.dumps(keys)}\n'
    (cloud.folder / SETTINGS).write_text(lists)
    cloud.has_bucket("there", number="8")
    cloud.has_bucket("far", location="us-east1", number="8")
    cloud.content |= {"forbidden": ["hidden"], "keys": keys[:1]}
    message = refused(cloud.up())
    assert message.count("refused: ") == 4
    for variable, name in (("data_buckets", "gone"), ("watched_buckets", "hidden"), ("job_keys", keys[1])):
        assert (
            f"{variable} in {SETTINGS} names {name!r}, which does not exist, or you may not see it" in message
        )
    assert f"names 'far', which is in 'us-east1': rules watch buckets in {REGION!r} only" in message


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


def test_the_receiver_of_a_local_stack_is_refused_in_the_cloud() -> None:
    local = {"webhook": {"url": "http://receiver.localhost/chat", "secret": "a"}}
    public = {"webhook": {"url": "https://a.example", "secret": "a"}}
    (fault,) = receiver_faults([public, {"slack": {"secret": "a"}}, local])
    assert "the policy's notify[2].webhook.url is the local stack's receiver" in fault


def test_a_secret_of_a_receiver_without_a_value_is_named_with_the_command_that_makes_it(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.content["secrets"] = ["there"]
    cloud.up()  # writes the project down
    monkeypatch.setenv("PATH", PROGRAMS + os.pathsep + os.environ["PATH"])
    monkeypatch.setenv("FAKE_CLOUD", str(cloud.folder))
    policy = {
        "notify": [
            {"name": "a", "slack": {"secret": "there"}},
            {"name": "b", "webhook": {"url": "https://a.example", "secret": "missing"}},
            {"name": "c", "github": {"repository": "o/n", "secret": "missing"}},
            {"name": "d", "email": {"to": ["a@example.com"]}},
        ]
    }
    names = replace(names_of(PROJECT, REGION), notify=receiver_settings(policy))
    assert dict(names.notify["d"]) == {"to": ["a@example.com"]}

    (fault,) = secret_faults(names)
    assert "the policy's notify names the secret 'missing', which has no value" in fault
    assert (
        f"`gcloud secrets create missing --project={PROJECT} --replication-policy=automatic --data-file=FILE`"
        in fault
    )
