"""Two deployments in one project: each runs the same request by itself, and leaves the other's jobs alone."""

import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from google.cloud.aiplatform_v1.types import CustomJob

from tests.processes import run_to_end
from tests.stack.injections.conftest import account, ask
from trainmaster.orchestrator.core.names import DEPLOYMENT_LABEL, RUN_LABEL
from trainmaster.resources import ROOT

from .project import Project, eventually, image_uri, request, running_project

pytestmark = [pytest.mark.slow(seconds=30), pytest.mark.timeout(300)]
PROJECT, NAME = "e2e-several", "stage"


class Deployment:
    """One of the project's deployments, as its documents and its functions' log show it."""

    def __init__(self, project: Project, prefix: str) -> None:
        self.project, self.prefix = project, prefix
        self.ledger = f"{project.id}-{prefix}ledger"

    def publish(self, content: str, key: str) -> str:
        """The id of the run that the request starts, once it has ended."""
        topic = f"trainmaster-{self.prefix}requests"
        self.project.publish(topic, content.encode(), idempotency_key=key)

        def ended() -> str | None:
            status = self.project.document(self.ledger, f"status/keys/{key}.json") or {}
            return str(status["run_id"]) if status.get("state") in ("succeeded", "failed") else None

        return self.project.eventually(ended, f"the end of {key} in {self.ledger}")

    def lines_about(self, text: str) -> list[tuple[str, str]]:
        """The severities and messages of the lines of on-job-log that have this text."""
        project = self.project
        service = f'resource.labels.service_name="{self.prefix}on-job-log"'
        name = f"projects/{project.id}/logs/run.googleapis.com%2Fstdout"
        found = project.logging.list_entries(filter_=f'logName="{name}" AND {service}')
        lines = [(str(each.severity), str(each.payload.get("message"))) for each in found]
        return [line for line in lines if text in line[1]]

    def has_handled(self, job_id: str) -> bool:
        """Whether it has looked at the entries of the job's start and end."""
        return len(self.lines_about(job_id)) > 1


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    state = tmp_path_factory.mktemp("several") / "state"
    with running_project(state, "--name", NAME, "--tick-s", "2", project=PROJECT) as running:
        yield running


@pytest.fixture
def deployments(project: Project) -> tuple[Deployment, Deployment]:
    return Deployment(project, ""), Deployment(project, f"{NAME}-")


def command(project: Project, *words: str) -> str:
    done = run_to_end([sys.executable, "-m", "trainmaster", *words], cwd=ROOT)
    return f"{done.returncode} {done.stdout}{done.stderr}"


def job_of(project: Project, record: dict[str, Any]) -> CustomJob:
    return project.vertex.get_custom_job(name=record["job"]["name"])


def test_the_same_request_becomes_a_run_a_job_and_a_champion_of_each(
    project: Project, deployments: tuple[Deployment, Deployment]
) -> None:
    """Even by the same idempotency key, whose runs have the same id."""
    content = request(project.id, model_name="both", champion={"metric": "loss", "goal": "minimize"})
    ids = [each.publish(content, "the-same") for each in deployments]
    assert ids[0] == ids[1]
    jobs = []
    for each in deployments:
        record = project.document(each.ledger, f"runs/{ids[0]}.json") or {}
        job = job_of(project, record)
        jobs.append(job.name)
        expected = {RUN_LABEL: ids[0], **({DEPLOYMENT_LABEL: NAME} if each.prefix else {})}
        assert {
            key: job.labels[key] for key in (RUN_LABEL, DEPLOYMENT_LABEL) if key in job.labels
        } == expected
        assert job.job_spec.service_account == f"tm-{each.prefix}trainer@{project.id}.iam.gserviceaccount.com"
        assert record["model"]["uri"].startswith(f"gs://{project.id}-{each.prefix}models/both/")
        crowned = partial(project.document, each.ledger, "champions/both.json")
        champion = project.eventually(crowned, "a champion")
        assert champion["current"]["model_uri"].startswith(f"gs://{project.id}-{each.prefix}champions/")
        assert record["problems"] == []
    assert jobs[0] != jobs[1]


def test_entries_of_a_strangers_job_cost_no_call_to_vertex_ai_and_are_not_warned_of(
    project: Project, deployments: tuple[Deployment, Deployment]
) -> None:
    url = project.env["VERTEX_EMULATOR_HOST"]
    stranger = CustomJob(
        display_name="stranger",
        labels={DEPLOYMENT_LABEL: "third", RUN_LABEL: "stranger-1"},
        job_spec={
            "worker_pool_specs": [
                {
                    "machine_spec": {"machine_type": "n1-standard-4"},
                    "replica_count": 1,
                    "container_spec": {"image_uri": f"{image_uri(project.id)}:1"},
                }
            ],
            "base_output_directory": {"output_uri_prefix": f"gs://{project.models}/stranger"},
        },
    )
    ask(url, {"name": "read", "at": "vertex.customJobs.get", "kind": "delay", "seconds": 0.001}, seed=1)
    parent = f"projects/{project.id}/locations/{project.region}"
    job = project.vertex.create_custom_job(parent=parent, custom_job=stranger)
    job_id = job.name.rpartition("/")[2]
    for each in deployments:
        eventually(partial(each.has_handled, job_id), "both entries are handled")
        assert set(each.lines_about(job_id)) == {("DEBUG", f"job {job_id} was not submitted here")}
    assert not [on for on in account(url, "read")["on"] if job_id in on]


def test_the_command_works_with_either_and_refuses_a_name_that_none_can_have(project: Project) -> None:
    of_stage = command(project, "ls", "-o", "name", "--context", f"local/{NAME}:{project.state}")
    of_other = command(project, "ls", "-o", "name", "--context", f"local:{project.state}")
    assert of_stage == of_other
    assert of_stage.startswith("0 ")
    report = command(project, "doctor", "--state", str(project.state), "--name", NAME)
    assert report.startswith("0 "), report
    assert f"sink trainmaster-{NAME}-job-logs: as it was deployed" in report
    refused = command(project, "doctor", "--state", str(project.state), "--name", "Stage")
    assert refused.startswith("2 ")
    assert "'Stage' is not the name of a deployment: expected 1 to 6 lower-case letters" in refused


def test_a_deployment_that_does_not_run_is_refused_with_how_to_start_it(project: Project) -> None:
    for words in (
        ("submit", "--image", ".", "--context", f"local/other:{project.state}"),
        ("up", "--detach", "--state", str(project.state), "--project", project.id, "--name", "other"),
    ):
        refused = command(project, *words)
        assert refused.startswith("4 "), refused
        assert f"does not run the deployment other. Stop it, and start it with every name: trainmaster up --detach --state {project.state} --name {NAME} --name other" in refused  # fmt: skip
