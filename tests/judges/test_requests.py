"""Every request that we ship, in every dialect, becomes a job that JobService takes."""

from pathlib import Path

import pytest

from tests.core.parsed import parse_request
from tests.core.shipped import REQUEST_RULES, ROOT
from tests.judges.jobs import job_faults
from trainmaster.orchestrator.core.names import model_name_from
from trainmaster.orchestrator.core.requests.request import Request
from trainmaster.orchestrator.core.requests.submission import Target, submission_of

NO_JOBS = {
    *(
        "evaluated/request.yaml",
        "served/request.yaml",
        "starter/request.yaml",
        "tested/request.yaml",
    ),  # their scripts are not uploaded yet
    "valid/training_request.v1.continued.yaml",
    "valid/training_request.v1.everything.yaml",  # these two have all keys, contradictions included
    "valid/training_request.v1.fallbacks.yaml",
}
TARGET = Target(project="my-project", region="us-central1", models_bucket="models")
RETRAINING = {"demo_rule.yaml", "demo_retrain.yaml"}
FILES = [
    *(
        path
        for path in sorted((ROOT / "examples").rglob("*.yaml"))
        if path.name not in RETRAINING and path.parent.name != "rules"
    ),
    *sorted((ROOT / "schemas/examples/valid").glob("training_request.*")),
]


@pytest.mark.parametrize(
    "path",
    [path for path in FILES if "/".join(path.parts[-2:]) not in NO_JOBS],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_a_request_that_we_ship_is_a_job_that_the_service_takes(path: Path) -> None:
    content = path.read_bytes().replace(b"${data_dir}", b"gs://datasets/tfds")
    request = parse_request(
        content, as_json=False, request_rules=REQUEST_RULES, name=model_name_from(path.stem)
    )
    assert isinstance(request, Request), [str(each) for each in request.faults]
    submission = submission_of("run-1", request.spec, TARGET)
    assert job_faults(submission.kind, submission.body) == []
