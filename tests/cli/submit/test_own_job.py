"""The job of a request without Trainmaster is one that Google's API and gcloud take."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.core.ai_platform_cases import CASES
from tests.core.ai_platform_jobs import IMAGE, Case, custom
from tests.core.parsed import parse_request
from tests.core.shipped import REQUEST_RULES, ROOT
from tests.judges.jobs import job_faults
from tests.narrowing import present
from trainmaster.cli.submit.own_job import Form, in_form, notes_on, own_job, region_of
from trainmaster.client.context import context_in_cloud
from trainmaster.client.submission.examination import Examination, examination_of
from trainmaster.client.submission.source import RequestSource
from trainmaster.client.submission.terms import terms_with_policy, terms_without_policy
from trainmaster.orchestrator.core.job_names import JobKind
from trainmaster.orchestrator.core.requests.request import Request
from trainmaster.orchestrator.core.requests.submission import Submission, Target, submission_of

EXAMPLES = ROOT / "examples" / "ai_platform"
CONTEXT = context_in_cloud("my-project", "us-central1")
TARGET = Target(project="my-project", region="us-central1", models_bucket="models")
POOL = {
    "machineSpec": {"machineType": "n1-standard-4"},
    "replicaCount": 1,
    "containerSpec": {"imageUri": IMAGE},
}
OURS = {"model_name": "census", "image": IMAGE, "cluster": {"chief": {"machine": "n1-standard-4"}}}
STUDY = {
    "metrics": [{"metricId": "loss", "goal": "MINIMIZE"}],
    "parameters": [{"parameterId": "rate", "discreteValueSpec": {"values": [0.1, 0.2]}}],
}
DIALECTS: dict[str, dict[str, Any]] = {
    "ours": OURS,
    "hp-tuning-jobs": {
        "displayName": "census",
        "maxTrialCount": 2,
        "parallelTrialCount": 1,
        "studySpec": STUDY,
        "trialJobSpec": {"workerPoolSpecs": [POOL]},
    },
    "custom-jobs": {"display_name": "census", "job_spec": {"worker_pool_specs": [POOL]}},
}


def examined(document: dict[str, Any], file: str = "job.yaml") -> Examination:
    source = RequestSource(file=file, content=yaml.safe_dump(document).encode())
    return examination_of(source, terms_without_policy(CONTEXT))


def job_of(document: dict[str, Any]) -> Submission:
    return own_job(present(examined(document).request), CONTEXT)


def said_of(document: dict[str, Any], form: Form) -> list[str]:
    request = present(examined(document).request)
    return list(notes_on(own_job(request, CONTEXT), form, request))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_job_is_one_that_the_api_takes(case: Case) -> None:
    text = yaml.safe_dump(dict(case.written)).encode()
    request = parse_request(text, as_json=False, request_rules=REQUEST_RULES)
    assert isinstance(request, Request)
    for submission in (submission_of("run-1", request.spec, TARGET), own_job(request, CONTEXT)):
        assert job_faults(submission.kind, submission.body) == []


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_examples_are_sound_and_open_with_the_command_that_shows_their_job(
    example: Path, tmp_path: Path
) -> None:
    assert f"trainmaster plan --for api examples/ai_platform/{example.name}" in example.read_text()
    policy = tmp_path / "policy.yaml"
    shipped = (ROOT / "functions" / "policy.yaml").read_text()
    policy.write_text(shipped.replace("retired_images: refuse", "retired_images: warn"))
    source = RequestSource(file=example.name, content=example.read_bytes())
    found = examination_of(source, terms_with_policy(CONTEXT, policy))
    assert found.request is not None, found.faults
    job = own_job(found.request, CONTEXT)
    assert job_faults(job.kind, job.body) == []
    assert job.body["displayName"] in (example.stem, "census")


@pytest.mark.parametrize("document", DIALECTS.values(), ids=DIALECTS)
def test_every_dialect_becomes_a_job(document: dict[str, Any]) -> None:
    job = job_of(document)
    assert job_faults(job.kind, job.body) == []
    assert job.body["displayName"] == "census"


def test_the_job_is_the_users_own_with_no_mark_of_a_run() -> None:
    body: Any = job_of(custom(jobDir="gs://elsewhere/jobs") | {"labels": {"team": "a"}}).body
    assert body["displayName"] == "job"
    assert body["labels"] == {"team": "a"}
    assert body["jobSpec"]["baseOutputDirectory"] == {"outputUriPrefix": "gs://elsewhere/jobs"}
    body = job_of(OURS).body
    assert body["jobSpec"]["baseOutputDirectory"] == {"outputUriPrefix": "gs://my-project-models/census"}


def test_what_only_the_service_fills_or_reads_is_reported() -> None:
    uri = "gs://bucket/m/${run_id}"
    request = OURS | {"args": [f"--dir={uri}"], "model_uri": uri}
    body: Any = job_of(request).body
    (pool,) = body["jobSpec"]["workerPoolSpecs"]
    assert pool["containerSpec"]["args"] == ["--dir=gs://bucket/m/census"]
    assert said_of(request, Form.API)[2:] == [
        "warning: the job does not belong to a run, so ${run_id} in args became census",
        "warning: model_uri is not part of a job: only Trainmaster uses it",
    ]


def test_the_file_for_gcloud_is_the_spec_and_the_command_has_the_rest() -> None:
    key = "projects/p/locations/us-central1/keyRings/r/cryptoKeys/k"
    document = custom(encryptionConfig={"kmsKeyName": key}) | {"labels": {"team": "a"}}
    assert job_faults(JobKind.CUSTOM, in_form(job_of(document), Form.GCLOUD), spec_alone=True) == []
    words = "--project=my-project --region=us-central1 --display-name=job --config=vertex.yaml"
    assert said_of(document, Form.GCLOUD) == [
        "customJobs, for projects/my-project/locations/us-central1",
        f"submit it with: gcloud ai custom-jobs create {words} --labels=team=a --kms-key={key}",
    ]


def test_the_file_for_gcloud_holds_a_whole_tuning() -> None:
    tuning = DIALECTS["hp-tuning-jobs"]
    assert in_form(job_of(tuning), Form.GCLOUD) == job_of(tuning).body
    assert "gcloud ai hp-tuning-jobs create" in said_of(tuning, Form.GCLOUD)[1]


def test_a_gpu_chooses_its_machine_without_a_policy() -> None:
    body: Any = job_of(OURS | {"cluster": {"chief": {"gpu": "L4:2"}}}).body
    (pool,) = body["jobSpec"]["workerPoolSpecs"]
    machine = {"machineType": "g2-standard-24", "acceleratorType": "NVIDIA_L4", "acceleratorCount": 2}
    assert pool["machineSpec"] == machine


def test_the_region_is_the_requests_own_unless_it_is_that_of_its_deployment() -> None:
    assert region_of(custom(region="us-west1")) == "us-west1"
    assert region_of(OURS | {"region": "${region}"}) is None
    assert region_of("text") is None
