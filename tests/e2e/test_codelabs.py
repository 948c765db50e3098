"""The codelabs' programs in examples/codelabs run here as they are.

In every run of the tests a small network stands for ResNet50; with TRAINMASTER_TEST_CODELABS=1 ResNet50 is trained, in some
minutes.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import pytest
import yaml

from tests.networks import SMALL_NETWORK

from .project import ROOT, Project

THOROUGH = os.environ.get("TRAINMASTER_TEST_CODELABS") == "1"
DEADLINE_S = 900 if THOROUGH else 300
TRIALS = 2 if THOROUGH else 1
pytestmark = [pytest.mark.slow(seconds=60), pytest.mark.timeout(DEADLINE_S + 120)]

CODELABS = ROOT / "examples" / "codelabs"
REQUESTS = {
    name: yaml.safe_load((CODELABS / name / "request.yaml").read_text())
    for name in ("multi_worker", "tuning")
}
SMALL = {
    "multi_worker": ["--image_size=64", "--batch_size=8", "--epochs=1", "--weights=random"],
    "tuning": ["--image_size=32", "--epochs=1"],
}
PREDICT = """
import sys
import numpy as np, tensorflow as tf
signature = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
(answer,) = signature(tf.zeros((2, 64, 64, 3))).values()
np.save(sys.argv[2], answer.numpy())
"""


@pytest.fixture(scope="module")
def images(project: Project, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The URI of each codelab's image, which stands for its source tree."""
    trees = tmp_path_factory.mktemp("codelabs") / "trees"
    shutil.copytree(CODELABS, trees, ignore=shutil.ignore_patterns("__pycache__"))
    if not THOROUGH:
        (trees / "multi_worker" / "trainer" / "__init__.py").write_text(SMALL_NETWORK)
    found = {"project": project.id, "region": project.region}
    uris = {name: Template(request["image"]).substitute(found) for name, request in REQUESTS.items()}
    provided = [f"{uri.rpartition(':')[0]}={trees / name}" for name, uri in uris.items()]
    command = [sys.executable, "-m", "trainmaster", "stack", "provide", *provided]
    command += ["--state", str(project.state)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return uris


@pytest.fixture(scope="module")
def variables(project: Project, leaves: Path, figures: Path) -> dict[str, str]:
    """What makes TFDS look in the data bucket, where a small cassava and horses_or_humans lie in their own formats."""
    bucket = project.env["TRAINMASTER_DATA_BUCKET"]
    for folder in (leaves, figures):
        shutil.copytree(folder, project.folder(bucket) / "codelabs", dirs_exist_ok=True)
    return {"TFDS_DATA_DIR": f"gs://{bucket}/codelabs"}


def ended_run(project: Project, name: str, document: dict[str, Any]) -> dict[str, Any]:
    """The record of a dropped request, once its run has ended well."""
    generation = project.upload(f"requests/{name}.json", json.dumps(document))
    status = project.final_status(f"requests/{name}.json", generation, deadline_s=DEADLINE_S)
    assert status["state"] == "succeeded", (status, project.tail())
    return project.record(status["run_id"])


def names_below(project: Project, uri: str) -> set[str]:
    bucket, _, prefix = uri.removeprefix("gs://").partition("/")
    prefix = f"{prefix.rstrip('/')}/"
    return {blob.name.removeprefix(prefix) for blob in project.storage.list_blobs(bucket, prefix=prefix)}


def predicted(project: Project, uri: str, folder: Path) -> Any:
    """What the saved model answers for two black images, computed as a server would compute it."""
    bucket, _, name = uri.removeprefix("gs://").partition("/")
    command = [sys.executable, "-c", PREDICT, str(project.folder(bucket) / name), str(folder / "answer.npy")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return np.load(folder / "answer.npy")


def test_multi_worker_training_goes_from_a_request_to_a_model_that_classifies_leaves(
    project: Project, images: dict[str, str], variables: dict[str, str], tmp_path: Path
) -> None:
    request = {**REQUESTS["multi_worker"], "args": SMALL["multi_worker"], "env": variables}
    model = ended_run(project, "cassava", request)["model"]
    assert model["format"] == "saved_model"
    assert model["uri"].startswith(f"gs://{project.models}/codelab-cassava/")
    assert not any("workertemp" in name for name in names_below(project, model["uri"]))
    leaf_probabilities = predicted(project, model["uri"], tmp_path)
    assert leaf_probabilities.shape == (2, 5)
    assert leaf_probabilities.sum(axis=1) == pytest.approx(1, abs=1e-5)


def test_tuning_goes_from_a_request_to_a_record_with_the_best_trials_model(
    project: Project, images: dict[str, str], variables: dict[str, str]
) -> None:
    tuning = {**REQUESTS["tuning"]["tuning"], "max_trials": TRIALS, "parallel_trials": TRIALS}
    request = {**REQUESTS["tuning"], "args": SMALL["tuning"], "env": variables, "tuning": tuning}
    record = ended_run(project, "horses", request)
    assert record["model"]["format"] == "saved_model"
    assert record["model"]["uri"] == record["tuning"]["best_trial"]["model_uri"]
    assert len(record["tuning"]["trials"]) == TRIALS
