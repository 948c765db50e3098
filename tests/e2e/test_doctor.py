"""`trainmaster doctor` on a running stack: every check passes, or each failure is named with its repair."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.command import trainmaster
from tests.processes import run_to_end
from trainstack.events.clients import clients_of

from .project import ROOT, Project, running_project

pytestmark = pytest.mark.slow(seconds=30)

PROJECT = "e2e-doctor"
SINK = "trainmaster-job-logs"
ALERT = f"tm-on-alert@{PROJECT}.iam.gserviceaccount.com"
SHORT_S = "6"


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    state = tmp_path_factory.mktemp("doctor") / "state"
    with running_project(state, "--tick-s", "3600", project=PROJECT) as running:
        yield running


def doctor(project: Project, *arguments: str) -> tuple[int, dict[str, str]]:
    """The exit status, and what was printed of each check, by the check; its repairs are the lines after the first."""
    words = ("doctor", "--state", str(project.state), *arguments)
    done = trainmaster(*words, cwd=ROOT, environment=os.environ)
    assert not done.err, done.err
    findings: dict[str, str] = {}
    check = ""
    for line in done.out.splitlines()[:-1]:
        if not line.startswith(" "):
            check = line[9:].partition(": ")[0]
        findings[check] = f"{findings.get(check, '')}{line}\n"
    return done.status, findings


def not_well(findings: dict[str, str]) -> dict[str, str]:
    return {check: text for check, text in findings.items() if not text.startswith("ok ")}


@contextmanager
def taken(project: Project, **what: list[dict[str, str]]) -> Iterator[None]:
    url = f"{project.env['IAM_EMULATOR_HOST']}/emulator/v1/taken-grants"
    assert httpx.post(url, json=what, timeout=60).status_code == 200
    try:
        yield
    finally:
        assert httpx.delete(url, timeout=60).status_code == 200


def test_all_is_well_and_nothing_is_left_of_it(deployed: Project) -> None:
    status, findings = doctor(deployed)
    assert not_well(findings) == {}
    assert status == 0
    assert {f"project {PROJECT}", f"sink {SINK}", "on_job_log handles it", "the policy allows it"} <= set(
        findings
    )
    accounts = [check for check in findings if check.startswith("permissions of tm-")]
    assert len(accounts) == 9 + 4
    assert deployed.records() == {}
    assert deployed.all_jobs() == []
    with clients_of(deployed.env["PUBSUB_EMULATOR_HOST"]) as clients:
        names = [each.name for each in clients.subscriber.list_subscriptions(project=f"projects/{PROJECT}")]
    assert not [name for name in names if "self-test" in name]


def test_a_deployment_that_does_not_exist_is_said_at_once(deployed: Project) -> None:
    status, findings = doctor(deployed, "--name", "nosuch")
    assert (status, list(findings)) == (1, [f"project {PROJECT}", "the deployment"])
    assert f"there is no bucket {PROJECT}-nosuch-ledger" in findings["the deployment"]


def test_a_removed_sink_is_reported_with_where_the_entry_stopped(deployed: Project) -> None:
    url = f"{deployed.env['LOGGING_EMULATOR_HOST']}/v2/projects/{PROJECT}/sinks"
    sink = httpx.get(f"{url}/{SINK}", timeout=60).json()
    httpx.delete(f"{url}/{SINK}", timeout=60)
    try:
        status, findings = doctor(deployed, "--wait-s", SHORT_S)
    finally:
        sink.pop("writerIdentity")
        assert httpx.post(f"{url}?uniqueWriterIdentity=true", json=sink, timeout=60).status_code == 200
    assert status == 1
    assert set(not_well(findings)) == {f"sink {SINK}", "the sink forwards it"}
    assert "the sink does not exist" in findings[f"sink {SINK}"]
    assert f"trainmaster deploy --project {PROJECT} --region us-central1" in findings[f"sink {SINK}"]
    assert "Cloud Logging returns it" in findings["a log entry is written"]


def test_a_revoked_grant_is_named_with_the_command(deployed: Project) -> None:
    """Of a function that no self-test calls, which would fail too."""
    member = f"serviceAccount:{ALERT}"
    with taken(deployed, grants=[{"member": member, "role": "*", "resource": "*-ledger"}]):
        status, findings = doctor(deployed)
    assert status == 1
    ((check, told),) = not_well(findings).items()
    assert check == f"permissions of {ALERT}"
    assert "storage.objects.delete" in told
    assert (
        f"gcloud storage buckets add-iam-policy-binding gs://{PROJECT}-ledger "
        f"--member={member} --role=roles/storage.objectUser"
    ) in told


def test_a_function_that_does_not_answer_is_named(deployed: Project) -> None:
    stopped = deployed.function_processes("on-job-log")
    for process in stopped:
        process.send_signal(signal.SIGSTOP)
    try:
        status, findings = doctor(deployed, "--wait-s", SHORT_S)
    finally:
        for process in stopped:
            process.send_signal(signal.SIGCONT)
    assert status == 1
    ((check, told),) = not_well(findings).items()
    assert check == "on_job_log handles it"
    assert "on-job-log did not report on message" in told
    assert "gcloud eventarc triggers describe on-job-log" in told
    assert findings["the sink forwards it"].startswith("ok")


@pytest.mark.parametrize(
    ("given", "called"),
    [
        (["STATE=.trainmaster"], "-m trainmaster doctor --state '.trainmaster'"),
        (
            ["PROJECT=my-project", "REGION=us-central1"],
            "-m trainmaster doctor --project 'my-project' --region 'us-central1'",
        ),
        (["PROJECT=my-project"], "Set PROJECT and REGION: make doctor PROJECT="),
    ],
)
def test_make_doctor_calls_it_with_what_was_given(given: list[str], called: str) -> None:
    said = run_to_end(["make", "-n", "doctor", *given], cwd=ROOT)
    assert called in said.stdout + said.stderr


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ([], 4, "trainmaster context use PROJECT/REGION"),
        (["--project", "p"], 2, "--region"),
        (["--project", "p", "--region", "r", "--topology", "no.yaml"], 2, "no.yaml"),
        (["--project", "p", "--region", "r"], 4, "gcloud auth application-default login"),
    ],
    ids=["no context", "no region", "no topology", "no credentials"],
)
def test_without_a_stack_or_a_project_it_says_what_it_needs(
    tmp_path: Path, words: list[str], status: int, said: str
) -> None:
    environment = {
        "HOME": str(tmp_path),
        "TRAINMASTER_CONFIG": str(tmp_path / "config"),
        "CLOUDSDK_CONFIG": str(tmp_path),
        "NO_GCE_CHECK": "true",
    }
    done = trainmaster("doctor", *words, cwd=tmp_path, environment=environment)
    assert (done.status, said in done.err) == (status, True), done.err
