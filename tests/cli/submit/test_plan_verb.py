"""`trainmaster plan` outside any context: the job and its cost, or every fault, and what it could not look at."""

import json
from pathlib import Path

import pytest
import yaml

from tests.command import Done, trainmaster
from tests.core.shipped import assert_valid

REQUEST = """\
model_name: flowers
image: us-central1-docker.pkg.dev/trainmaster-local/trainmaster/trainer:latest
cluster:
  chief: {machine: n1-standard-8}
scheduling: {timeout_s: 3600}
fallbacks:
  - {cluster: {chief: {machine: n1-standard-4}}}
"""
SCRIPTED = "model_name: m\nscript: {file: train.py}\ncluster: {chief: {machine: n1-standard-4}}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "request.yaml").write_text(REQUEST)
    (tmp_path / "train.py").write_text("print(1)\n")
    return tmp_path / "request.yaml"


def plan(file: Path, *words: str, text: str = "") -> Done:
    environment = {"HOME": str(file.parent), "PATH": "/usr/bin:/bin"}
    return trainmaster("plan", *words, cwd=file.parent, environment=environment, text=text)


def test_without_a_context_it_shows_the_jobs_and_says_what_it_did_not_look_at(file: Path) -> None:
    done = plan(file, file.name)
    assert done.status == 0, done.err
    assert "customJobs in us-central1 on n1-standard-8" in done.out
    assert "USD an hour" in done.out
    assert (
        "The job, as Vertex AI gets it: POST projects/trainmaster-local/locations/us-central1/customJobs"
        in done.out
    )
    assert "Fallback 1, as Vertex AI gets it" in done.out
    where = "project trainmaster-local, region us-central1 (the names of a new local stack)"
    assert f"Planned for {where}.\nNothing was submitted. Not looked at:\n  the queue, limits" in done.err


@pytest.mark.parametrize(
    "words", [("plan",), ("plan", "-o", "json"), ("check", "--context", "local:/nowhere")]
)
def test_a_chosen_context_that_does_not_answer_is_refused(file: Path, words: tuple[str, ...]) -> None:
    environment = {"HOME": str(file.parent), "TRAINMASTER_CONTEXT": "local:/nowhere"}
    done = trainmaster(*words, file.name, cwd=file.parent, environment=environment)
    assert (done.status, done.out) == (4, "")
    assert "No stack is ready on '/nowhere'" in done.err


def test_a_packed_script_is_one_line_of_its_job_and_whole_for_programs(file: Path) -> None:
    file.write_text(SCRIPTED)
    done = plan(file, file.name)
    assert done.status == 0, done.err
    assert "# runs train.py of gs://" in done.out
    assert "tarfile" not in done.out
    assert "tarfile" in plan(file, file.name, "-o", "yaml").out


def test_as_json_it_fits_its_schema(file: Path) -> None:
    document = json.loads(plan(file, "-", "-o", "json", text=REQUEST).out)
    assert_valid(document, "plan.v1")
    machines = [
        job["body"]["jobSpec"]["workerPoolSpecs"][0]["machineSpec"]["machineType"] for job in document["jobs"]
    ]
    assert machines == ["n1-standard-8", "n1-standard-4"]
    assert "outlook" not in document


@pytest.mark.parametrize("form", [(), ("--for", "api")])
def test_every_fault_is_shown_in_its_place_and_nothing_else(file: Path, form: tuple[str, ...]) -> None:
    file.write_text(REQUEST.replace("machine: n1-standard-8", "machin: n1-standard-8") + "labels: 3\n")
    done = plan(file, file.name, *form)
    assert (done.status, done.out) == (2, "")
    assert "request.yaml:4:11: error: $.cluster.chief.machin: unknown key 'machin'" in done.err
    assert "  4 |   chief: {machin: n1-standard-8}\n" in done.err
    assert "$.labels" in done.err


def test_a_value_is_set_by_its_path(file: Path) -> None:
    words = ("--set", "cluster.chief.machine=n1-highmem-8", "--set", "labels.team=blue", "-o", "json")
    request = json.loads(plan(file, file.name, *words).out)["request"]
    assert (request["cluster"]["chief"], request["labels"]) == ({"machine": "n1-highmem-8"}, {"team": "blue"})
    done = plan(file, file.name, "--set", "fallbacks[7]=1")
    assert (done.status, done.out) == (2, "")
    assert "--set 'fallbacks[7]=1': " in done.err


def test_the_policy_of_a_file_decides_in_place_of_the_deployments(file: Path) -> None:
    policy = (Path(__file__).parents[3] / "functions" / "policy.yaml").read_text()
    (file.parent / "policy.yaml").write_text(policy.replace("n1-", "n9-"))
    for form in ((), ("--for", "gcloud")):
        done = plan(file, file.name, "--policy", "policy.yaml", *form)
        assert done.status == 2
        assert "$.cluster.chief.machine" in done.err


def test_for_gcloud_it_prints_the_job_alone_without_a_policy_in_the_requests_region(file: Path) -> None:
    file.write_text(
        "trainingInput: {region: us-west1, scaleTier: BASIC, masterConfig: {imageUri: gcr.io/p/i:1}}\n"
    )
    words = (file.name, "--for", "gcloud", "--context", "my-project/europe-west4")
    done = plan(file, *words)
    assert done.status == 0, done.err
    assert list(yaml.safe_load(done.out)) == ["workerPoolSpecs", "baseOutputDirectory"]
    kind, command, *rest = done.err.splitlines()
    assert kind == "customJobs, for projects/my-project/locations/us-west1"
    assert command.startswith("submit it with: gcloud ai custom-jobs create --project=my-project")
    assert any(line.startswith("request.yaml:1:") and ": warning: " in line for line in rest)
    assert rest[-1] == "not checked: what the deployment's policy allows; --policy FILE checks it"
    assert json.loads(plan(file, *words, "-o", "json").out) == yaml.safe_load(done.out)


@pytest.mark.parametrize("policy", [(), ("--policy", "policy.yaml")])
def test_a_script_of_this_machine_has_no_job_of_its_own_to_print(file: Path, policy: tuple[str, ...]) -> None:
    (file.parent / "policy.yaml").write_text(
        (Path(__file__).parents[3] / "functions/policy.yaml").read_text()
    )
    file.write_text(SCRIPTED)
    done = plan(file, file.name, "--for", "api", *policy)
    assert (done.status, done.out) == (2, "")
    assert "The script is only on this machine, so there is no job of it to print yet." in done.err
    assert "trainmaster plan request.yaml" in done.err
