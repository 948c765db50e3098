"""A job that writes its own perfect numbers, wherever it can, and is scored by another account's job."""

import json
from pathlib import Path

import pytest

from tests.e2e.project import Project

from .conftest import PROJECT, Trainmaster

pytestmark = [pytest.mark.slow(seconds=30), pytest.mark.timeout(300)]
FORGE = """
import json, os, sys
root, model = os.environ.get("TRAINMASTER_GCS_ROOT", "/gcs"), os.environ["AIP_MODEL_DIR"].removeprefix("gs://")
os.makedirs(os.path.join(root, model), exist_ok=True)
open(os.path.join(root, model, "model.txt"), "w").write(sys.argv[1])
open(os.path.join(root, model, "metrics.json"), "w").write(json.dumps({"val_accuracy": 1.0}))
champions, numbers = "PROJECT-champions", "_evaluations/forged/" + model.split("/")[2] + "/metrics.json"
try:
    path = os.path.join(root, champions, numbers)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    open(path, "w").write(json.dumps({"challenger": {"val_accuracy": 1.0}}))
    print("mounted: written")
except OSError as error:
    print("mounted:", error.strerror)
"""
SCORE = """
import json, os
def read(uri, *names):
    return open(os.path.join(os.environ.get("TRAINMASTER_GCS_ROOT", "/gcs"), uri.removeprefix("gs://"), *names)).read()
given = {name: os.environ.get(f"TRAINMASTER_{name.upper()}_URI") for name in ("challenger", "champion")}
scores = {name: {"val_accuracy": float(read(uri, "model.txt"))} for name, uri in given.items() if uri}
out = os.path.join(os.environ.get("TRAINMASTER_GCS_ROOT", "/gcs"), os.environ["TRAINMASTER_EVALUATION_OUTPUT_URI"].removeprefix("gs://"))
os.makedirs(out, exist_ok=True)
open(os.path.join(out, "metrics.json"), "w").write(json.dumps(scores))
print("scored", *scores)
"""
REQUEST = {
    "model_name": "forged",
    "script": {"file": "train.py"},
    "args": ["0.6"],
    "cluster": {"chief": {"machine": "n1-standard-4"}},
    "champion": {
        "metric": "val_accuracy",
        "goal": "maximize",
        "evaluate": {"script": {"file": "score.py"}, "data": f"gs://{PROJECT}-data/none"},
    },
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(FORGE.replace("PROJECT", PROJECT))
    (tmp_path / "score.py").write_text(SCORE)
    (tmp_path / "request.yaml").write_text(json.dumps(REQUEST))
    return tmp_path


def test_a_job_that_writes_a_perfect_metric_does_not_become_champion(
    folder: Path, trainmaster: Trainmaster, stack: Project
) -> None:
    context = ("--context", f"local:{stack.state}")
    for accuracy in ("0.6", "0.5"):
        done = trainmaster("submit", "request.yaml", "--wait", *context, "--", accuracy, cwd=folder)
        assert done.status == 0, done.err
        run_id = done.out.split()[0]
    log = trainmaster("logs", run_id, *context).out
    assert "mounted: " in log
    assert "mounted: written" not in log
    record = stack.finished_record(run_id)
    assert record["model"]["metrics"] == {"val_accuracy": 1.0}
    assert record["completion"]["evaluation"]["scores"]["challenger"] == {"val_accuracy": 0.5}
    verdict = record["completion"]["champion"]
    assert verdict["reason"] == "val_accuracy 0.5 is not better than the champion's 0.6"
    (job,) = [job for job in stack.jobs(run_id) if job.labels.get("trainmaster_step") == "evaluation"]
    assert job.job_spec.service_account == f"tm-eval@{PROJECT}.iam.gserviceaccount.com"
    assert "| scored challenger champion\n" in trainmaster("logs", run_id, "--evaluation", *context).out
    assert "challenger: val_accuracy 0.5" in trainmaster("why", run_id, *context).out
