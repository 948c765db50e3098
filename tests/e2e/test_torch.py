"""A PyTorch job with several replicas, from a dropped request to its record."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from google.cloud.aiplatform_v1.types import JobState

from trainstack.sandbox.probe import obstacle

from .project import ENDED, ROOT, Project

DDP = Path(__file__).parent / "ddp.py"
DEADLINE_S = 400

pytest.importorskip("torch")  # before a stack is started for it
pytestmark = [pytest.mark.slow, pytest.mark.timeout(DEADLINE_S + 60)]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The result of a single process that trains on whole batches."""
    out = tmp_path_factory.mktemp("alone")
    command = ["--framework=torch", "--", sys.executable, str(DDP), "--out", str(out)]
    subprocess.run(
        [sys.executable, "-m", "trainer.launch", *command],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=120,
    )
    found: dict[str, Any] = json.loads((out / "rank-0.json").read_text())
    return found


@pytest.mark.parametrize(
    ("name", "program", "ranks"),
    [
        ("ddp", ["python"], 2),
        ("torchrun", ["python", "-m", "torch.distributed.run", "--nproc_per_node=2"], 4),
    ],
)
def test_replicas_average_their_gradients_and_the_run_succeeds(
    project: Project, alone: dict[str, Any], name: str, program: list[str], ranks: int
) -> None:
    project.storage.bucket(project.env["TRAINMASTER_DATA_BUCKET"]).blob("ddp.py").upload_from_filename(DDP)
    request = {
        "model_name": name,
        "image": f"us-central1-docker.pkg.dev/{project.id}/trainmaster/trainer:1",
        "command": [
            "python",
            "-m",
            "trainer.launch",
            "--framework",
            "torch",
            "--",
            *program,
            script(project),
        ],
        "cluster": {
            "chief": {"machine": "n1-standard-4"},
            "workers": {"count": 1, "machine": "n1-standard-4"},
        },
    }
    dropped = f"requests/{name}.json"
    project.upload(dropped, json.dumps(request))

    def ended() -> str | None:
        status = project.status(dropped)
        return status["run_id"] if status and status["state"] in ENDED else None

    run_id = project.eventually(ended, f"an end of {dropped}", deadline_s=DEADLINE_S)
    record = project.record(run_id)
    assert record["state"] == "succeeded", (record, project.tail())
    assert record["model"]["uri"] == f"gs://{project.models}/{name}/{run_id}/model/"
    assert record["model"]["metrics"] == {"loss": pytest.approx(0, abs=0.1)}
    (job,) = project.jobs(run_id)
    assert job.state == JobState.JOB_STATE_SUCCEEDED
    found = [weights(project, name, run_id, rank) for rank in range(ranks)]
    assert [(each["rank"], each["size"]) for each in found] == [(rank, ranks) for rank in range(ranks)]
    assert all(each["weights"] == found[0]["weights"] for each in found)
    assert found[0]["losses"] != found[1]["losses"]  # each saw different examples
    assert found[0]["weights"] == pytest.approx(alone["weights"], abs=1e-9)
    assert alone["losses"][-1] < alone["losses"][0]


def script(project: Project) -> str:
    """Where a replica sees ddp.py of the data bucket."""
    bucket = project.env["TRAINMASTER_DATA_BUCKET"]
    private = not obstacle()
    return f"/gcs/{bucket}/ddp.py" if private else str(project.folder(bucket) / "ddp.py")


def weights(project: Project, name: str, run_id: str, rank: int) -> dict[str, Any]:
    found = project.document(project.models, f"{name}/{run_id}/checkpoints/rank-{rank}.json")
    assert found is not None, (rank, project.tail())
    return found
