"""Functions and jobs of a running stack have the permissions of their accounts and no more."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from trainstack.sandbox.probe import obstacle
from trainstack.stack.images import provide

from .project import Project, request, running_project
from .topologies import quick_topology

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(bool(obstacle()), reason="this machine does not allow namespaces"),
]

GREEDY = """
import json, os
from google.api_core.exceptions import GoogleAPICallError
from google.cloud import pubsub_v1, storage
from google.cloud.aiplatform_v1 import JobServiceClient
import google.cloud.logging

name = os.environ["GREEDY_PROJECT"]
objects = storage.Client(project=name)
ledger, inbox, mine = (objects.bucket(f"{name}-{role}") for role in ("ledger", "inbox", "mine"))
jobs = JobServiceClient(client_options={"api_endpoint": "us-central1-aiplatform.googleapis.com"})
place = f"projects/{name}/locations/us-central1"
attempts = {
    "read the ledger": lambda: ledger.blob("deployment.json").download_as_bytes(),
    "list the ledger": lambda: list(objects.list_blobs(ledger)),
    "write the ledger": lambda: ledger.blob("runs/forged.json").upload_from_string("{}"),
    "drop a request": lambda: inbox.blob("requests/forged.yaml").upload_from_string("a: b"),
    "write the copy of a champion": lambda: objects.bucket(f"{name}-champions").blob("m/run/model").upload_from_string("x"),
    "make a bucket": lambda: objects.create_bucket("forged-bucket"),
    "publish a request": lambda: pubsub_v1.PublisherClient().publish(f"projects/{name}/topics/trainmaster-requests", b"a").result(60),
    "list the jobs": lambda: list(jobs.list_custom_jobs(parent=place)),
    "read the logs": lambda: list(google.cloud.logging.Client(project=name).list_entries(max_results=1)),
    "read the user's bucket": lambda: mine.blob("data.csv").download_as_bytes(),
}
codes = {}
for what, attempt in attempts.items():
    try:
        attempt()
        codes[what] = 200
    except GoogleAPICallError as refused:
        codes[what] = int(refused.code)
bucket, _, prefix = os.environ["AIP_MODEL_DIR"].removeprefix("gs://").partition("/")
objects.bucket(bucket).blob(f"{prefix}codes.json").upload_from_string(json.dumps(codes))
"""


def test_a_jobs_clients_are_refused_all_that_its_account_is_not_granted(
    project: Project, tmp_path: Path
) -> None:
    (tmp_path / "Dockerfile").write_text(
        "FROM python:3.11-slim\nWORKDIR /app\nCOPY train.py .\nENTRYPOINT ['python', 'train.py']\n".replace(
            "'", '"'
        )
    )
    (tmp_path / "train.py").write_text(GREEDY)
    image = f"us-central1-docker.pkg.dev/{project.id}/trainmaster/greedy"
    provide(project.state, {image: tmp_path})
    project.storage.create_bucket(f"{project.id}-mine").blob("data.csv").upload_from_string("1,2")
    document = json.loads(request(project.id, model_name="greedy", env={"GREEDY_PROJECT": project.id}))
    project.upload("requests/greedy.json", json.dumps(document | {"image": f"{image}:1"}))
    status = project.final_status("requests/greedy.json")
    assert status["state"] == "succeeded", status
    codes = project.document(project.models, f"greedy/{status['run_id']}/model/codes.json")
    assert codes is not None
    assert codes.pop("read the user's bucket") == 200
    assert len(codes) == 9
    assert set(codes.values()) == {403}, codes


@contextmanager
def taken(project: Project, **grant: str) -> Iterator[None]:
    """While the block runs, the deployment lacks a grant."""
    url = f"{project.env['IAM_EMULATOR_HOST']}/emulator/v1/taken-grants"
    httpx.post(url, json={"grants": [grant]}, timeout=60).raise_for_status()
    try:
        yield
    finally:
        httpx.delete(url, timeout=60).raise_for_status()


def test_a_function_that_lacks_a_grant_is_refused_until_it_has_it_again(project: Project) -> None:
    """Which shows that functions authenticate, so that all other tests prove the grants that they need."""
    member = f"serviceAccount:tm-on-request-uploaded@{project.id}.iam.gserviceaccount.com"
    log = project.state / "logs" / "on-request-uploaded.log"
    with taken(project, member=member, role="roles/storage.objectUser", resource="*-ledger"):
        project.upload("requests/denied.json", request(project.id))
        project.eventually(
            lambda: "does not have storage.objects." in log.read_text(errors="replace"),
            "a refusal in the log",
        )
    assert project.final_status("requests/denied.json")["state"] == "succeeded"


def answer_to_a_trainer(project: Project) -> int:
    """The status of a request for the ledger, which the trainer's account may not read."""
    email = f"tm-trainer@{project.id}.iam.gserviceaccount.com"
    issued = httpx.post(
        f"{project.env['IAM_EMULATOR_HOST']}/v1/projects/-/serviceAccounts/{email}:generateAccessToken",
        json={"scope": ["https://www.googleapis.com/auth/cloud-platform"]},
        timeout=60,
    )
    answer = httpx.get(
        f"{project.env['STORAGE_EMULATOR_HOST']}/storage/v1/b/{project.ledger}/o/deployment.json",
        headers={"Authorization": f"Bearer {issued.json()['accessToken']}"},
        timeout=60,
    )
    return answer.status_code


def test_accounts_are_refused_by_default(project: Project) -> None:
    assert answer_to_a_trainer(project) == 403
    assert "not enforced" not in project.log.read_text()


def test_without_isolation_accounts_are_refused_nothing_and_the_stack_says_so(tmp_path: Path) -> None:
    arguments = ("--topology", str(quick_topology(tmp_path)), "--isolation", "none")
    with running_project(tmp_path / "state", *arguments, project="e2e-none") as project:
        assert answer_to_a_trainer(project) == 200
        assert "not enforced: --isolation none" in project.log.read_text()
