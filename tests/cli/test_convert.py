"""`trainmaster convert`, run as a separate process, prints the Vertex AI form of a request."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.command import Done, trainmaster
from tests.core.legacy_cases import CASES
from tests.core.legacy_jobs import IMAGE, Case, custom
from tests.core.parsed import parse_request
from tests.core.shipped import REQUEST_RULES, ROOT
from tests.judges.jobs import job_faults
from trainmaster.cli.convert import converted
from trainmaster.orchestrator.core.job_names import JobKind
from trainmaster.orchestrator.core.requests.request import Request
from trainmaster.orchestrator.core.requests.submission import Target, submission_of

EXAMPLES = ROOT / "examples" / "ai_platform"
TARGET = Target(project="my-project", region="us-central1", models_bucket="models")


def convert(*arguments: str, text: str = "") -> Done:
    """Run the command without this process's environment."""
    return trainmaster("convert", *arguments, cwd=ROOT, environment={}, text=text)


def lenient_policy(folder: Path) -> tuple[str, ...]:
    """Flags of a deployment with the shipped policy, letting containers through that have ended."""
    text = (ROOT / "functions" / "policy.yaml").read_text()
    file = folder / "policy.yaml"
    file.write_text(text.replace("retired_images: refuse", "retired_images: warn"))
    deployment = ("--project", "my-project", "--models-bucket", "my-project-models")
    return ("--policy", str(file), *deployment)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_job_is_one_that_the_api_takes(case: Case) -> None:
    text = yaml.safe_dump(dict(case.written)).encode()
    request = parse_request(text, as_json=False, request_rules=REQUEST_RULES)
    assert isinstance(request, Request)
    for submission in (submission_of("run-1", request.spec, TARGET), converted(request.spec, TARGET)):
        assert job_faults(submission.kind, submission.body) == []


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_examples_are_sound_and_open_with_the_command_that_converts_them(
    example: Path, tmp_path: Path
) -> None:
    assert f"trainmaster convert examples/ai_platform/{example.name}" in example.read_text()
    done = convert(str(example), *lenient_policy(tmp_path))
    assert done.status == 0, done.err
    job = yaml.safe_load(done.out)
    assert job_faults(JobKind(done.err.split(",")[0]), job) == []
    assert job["displayName"] in (example.stem, "census")


@pytest.mark.parametrize("with_policy", [False, True])
def test_the_untouched_starter_of_init_is_referred_to_plan(with_policy: bool, tmp_path: Path) -> None:
    """Its script is uploaded by `submit`: before that, there is no job."""
    assert trainmaster("init", cwd=tmp_path, environment={"HOME": str(tmp_path)}).status == 0
    request = str(tmp_path / "request.yaml")
    done = convert(request, *(lenient_policy(tmp_path) if with_policy else ()))
    assert done.status == 1
    (first, *rest) = done.err.splitlines()
    assert first.endswith(
        "$.script.archive: the script is only on this machine, so there is no job of it to print yet"
    )
    assert (
        rest[-1].strip() == f"see the job that `trainmaster submit` would start: trainmaster plan {request}"
    )
    assert len(rest) == 3


def test_the_job_is_the_users_own_with_no_mark_of_a_run(tmp_path: Path) -> None:
    done = convert(_file(tmp_path, custom(jobDir="gs://elsewhere/jobs") | {"labels": {"team": "a"}}))
    assert done.status == 0, done.err
    body = yaml.safe_load(done.out)
    assert body["displayName"] == "job"
    assert body["labels"] == {"team": "a"}
    assert body["jobSpec"]["baseOutputDirectory"] == {"outputUriPrefix": "gs://elsewhere/jobs"}


def test_what_only_the_service_fills_or_reads_is_reported(tmp_path: Path) -> None:
    uri = "gs://bucket/m/${run_id}"
    request = {"model_name": "m", "image": IMAGE, "args": [f"--dir={uri}"], "model_uri": uri}
    done = convert(_file(tmp_path, request | {"cluster": {"chief": {"machine": "n1-standard-4"}}}))
    (pool,) = yaml.safe_load(done.out)["jobSpec"]["workerPoolSpecs"]
    assert pool["containerSpec"]["args"] == ["--dir=gs://bucket/m/m"]
    assert "${run_id} in args became m" in done.err
    assert "model_uri is not part of a job" in done.err


def test_json_is_the_same_document(tmp_path: Path) -> None:
    file = _file(tmp_path, custom())
    assert json.loads(convert(file, "--json").out) == yaml.safe_load(convert(file).out)


def test_the_file_for_gcloud_is_the_spec_and_the_command_has_the_rest(tmp_path: Path) -> None:
    key = "projects/p/locations/us-west1/keyRings/r/cryptoKeys/k"
    document = custom(encryptionConfig={"kmsKeyName": key}, region="us-west1") | {"labels": {"team": "a"}}
    done = convert(_file(tmp_path, document), "--for", "gcloud", "--project", "my-project")
    assert job_faults(JobKind.CUSTOM, yaml.safe_load(done.out), spec_alone=True) == []
    command = done.err.splitlines()[1].removeprefix("submit it with: ")
    assert command == (
        "gcloud ai custom-jobs create --project=my-project --region=us-west1 --display-name=job "
        f"--config=vertex.yaml --labels=team=a --kms-key={key}"
    )


def test_the_file_for_gcloud_holds_a_whole_tuning() -> None:
    example = str(EXAMPLES / "tuning.yaml")
    done = convert(example, "--for", "gcloud")
    assert done.out == convert(example).out
    assert job_faults(JobKind.TUNING, yaml.safe_load(done.out)) == []
    assert "gcloud ai hp-tuning-jobs create" in done.err


def test_standard_input_is_a_file_without_a_name() -> None:
    text = (EXAMPLES / "config.yaml").read_text()
    done = convert("-", text=text)
    assert done.status == 1
    assert "$.jobId: missing: the model needs a name" in done.err.splitlines()[0]
    assert yaml.safe_load(convert("-", "--name", "census", text=text).out)["displayName"] == "census"
    assert convert("-", "--name", "Census 1", text=text).status == 2


def test_a_gpu_chooses_its_machine_without_a_policy() -> None:
    request = {"model_name": "m", "image": IMAGE, "cluster": {"chief": {"gpu": "L4:2"}}}
    (pool,) = yaml.safe_load(convert("-", text=yaml.safe_dump(request)).out)["jobSpec"]["workerPoolSpecs"]
    machine = {"machineType": "g2-standard-24", "acceleratorType": "NVIDIA_L4", "acceleratorCount": 2}
    assert pool["machineSpec"] == machine


@pytest.mark.parametrize(
    "document",
    [
        {
            "model_name": "census",
            "image": IMAGE,
            "cluster": {
                "chief": {"machine": "n1-standard-4"},
                "evaluators": {"count": 1, "machine": "n1-standard-4"},
            },
        },
        {
            "displayName": "census",
            "maxTrialCount": 2,
            "parallelTrialCount": 1,
            "studySpec": {
                "metrics": [{"metricId": "loss", "goal": "MINIMIZE"}],
                "parameters": [{"parameterId": "rate", "discreteValueSpec": {"values": [0.1, 0.2]}}],
            },
            "trialJobSpec": {
                "workerPoolSpecs": [
                    {
                        "machineSpec": {"machineType": "n1-standard-4"},
                        "replicaCount": 1,
                        "containerSpec": {"imageUri": IMAGE},
                    }
                ]
            },
        },
        {
            "display_name": "census",
            "job_spec": {
                "worker_pool_specs": [
                    {
                        "machine_spec": {"machine_type": "n1-standard-4"},
                        "replica_count": 1,
                        "container_spec": {"image_uri": IMAGE},
                    }
                ]
            },
        },
    ],
    ids=["ours", "hp-tuning-jobs", "custom-jobs"],
)
def test_every_dialect_is_converted(document: dict[str, Any]) -> None:
    done = convert("-", text=json.dumps(document))
    assert done.status == 0, done.err
    job = yaml.safe_load(done.out)
    assert job_faults(JobKind(done.err.split(",")[0]), job) == []
    assert job["displayName"] == "census"


def test_the_region_may_be_another(tmp_path: Path) -> None:
    file, policy = str(EXAMPLES / "package.yaml"), lenient_policy(tmp_path)
    assert "--region=asia-east1" in convert(file, *policy, "--region", "asia-east1").err


def test_packages_are_refused_while_no_container_can_run_them() -> None:
    done = convert(str(EXAMPLES / "package.yaml"))
    assert (done.status, done.out) == (1, "")
    fault = done.err
    assert "$.trainingInput.runtimeVersion: the prebuilt container has been unavailable since" in fault
    assert "docs/how-to/ai-platform.md#packages-in-your-own-image" in fault


def test_warnings_go_to_standard_error_and_name_unverified_rows(tmp_path: Path) -> None:
    done = convert(str(EXAMPLES / "package.yaml"), *lenient_policy(tmp_path))
    warnings = [line for line in done.err.splitlines() if ": warning: " in line]
    assert [line.split(": ")[2] for line in warnings] == [
        "$.trainingInput.scaleTier",
        "$.trainingInput.runtimeVersion",
        "$.trainingInput.runtimeVersion",
    ]
    assert "unavailable since 2026-07-11" in warnings[2]
    assert "unverified" in done.err
    assert "warning" not in done.out


def test_every_fault_goes_to_standard_error_and_nothing_is_printed(tmp_path: Path) -> None:
    document = {"trainingInput": {"scaleTier": "BASIC_GPU", "masterType": "n1-standard-4", "bogus": 1}}
    done = convert(_file(tmp_path, document))
    assert (done.status, done.out) == (1, "")
    paths = [line.split(": ")[2] for line in done.err.splitlines() if line.startswith(str(tmp_path))]
    assert sorted(paths) == [
        "$.trainingInput.bogus",
        "$.trainingInput.masterConfig",
        "$.trainingInput.masterType",
        "$.trainingInput.scaleTier",
    ]


def test_the_policy_holds_only_where_one_is_given(tmp_path: Path) -> None:
    file = _file(tmp_path, custom(masterType="z9-huge-1"))
    assert convert(file).status == 0
    done = convert(file, "--policy", str(ROOT / "functions" / "policy.yaml"))
    assert done.status == 1
    assert "$.trainingInput.masterType: the policy does not allow it" in done.err


@pytest.mark.parametrize("faulty", ["nowhere.yaml", "", "policy"])
def test_a_file_that_cannot_be_used_ends_with_2(tmp_path: Path, faulty: str) -> None:
    (tmp_path / "policy.yaml").write_text("schema: policy.v1\n")
    arguments = [str(EXAMPLES / "config.yaml"), "--policy", str(tmp_path / "policy.yaml")]
    done = convert(*(arguments if faulty == "policy" else [str(tmp_path / faulty)]))
    assert (done.status, done.out) == (2, "")
    assert str(tmp_path) in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("text", ["", "[", "- 1", "trainingInput: &a [*a]", "jobId: x\njobId: x\n"])
def test_what_is_no_request_is_faulty(text: str) -> None:
    done = convert("-", text=text)
    assert (done.status, done.out) == (1, "")
    assert ": $" in done.err.splitlines()[0]


def _file(folder: Path, document: dict[str, Any]) -> str:
    path = folder / "job.yaml"
    if "model_name" in document.get("labels", {}):
        document = {**document, "labels": {}}
    path.write_text(yaml.safe_dump(document))
    return str(path)


def test_faults_come_in_the_order_of_the_text_as_check_lists_them(tmp_path: Path) -> None:
    request = tmp_path / "r.yaml"
    request.write_text(
        "zone: 1\nmodel_name: a\nimage: gcr.io/p/b\ncluster: {chief: {machine: n1-standard-4}}\nargs: x\n"
    )
    words = ("--project", "p", "--region", "us-central1", str(request))
    checked = trainmaster("check", *words, cwd=tmp_path, environment={"HOME": str(tmp_path)})
    texts = (convert(str(request)).err, checked.out)
    found = [[line for line in text.splitlines() if ": error: " in line] for text in texts]
    assert found[0] == found[1]
    assert [line.partition(": error: ")[2].partition(":")[0] for line in found[0]] == ["$.zone", "$.args"]
