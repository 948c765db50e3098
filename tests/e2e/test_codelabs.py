"""The codelabs' programs in examples/codelabs run here as they are.

In every run of the tests a small network stands for ResNet50, and hypertune lies beside its program: installed by the image it
would need an environment of its own, with TensorFlow. With TRAINMASTER_TEST_CODELABS=1 all is as in the codelabs, in some minutes.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from string import Template
from typing import Any

import pytest
import yaml

from tests.environments import run_uv
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
# Plain TensorFlow: the share of the examples of a split for which the signature gives their label.
EVALUATE = """
import json, sys
import tensorflow as tf, tensorflow_datasets as tfds
model_dir, data_dir, name, split, size = sys.argv[1:]
model = tf.saved_model.load(model_dir)  # owns the signature's variables
signature = model.signatures["serving_default"]
(given,) = signature.structured_input_signature[1]
encoded = {"image": tfds.decode.SkipDecoding()} if given == "image_bytes" else None
right = []
for image, label in tfds.load(name, data_dir=data_dir, split=split, as_supervised=True, decoders=encoded):
    image = image if encoded else tf.image.resize(image, [int(size)] * 2) / 255.0
    answer = signature(**{given: image[tf.newaxis]})
    (row,) = answer.get("probabilities", next(iter(answer.values()))).numpy()
    right.append(int(row.argmax() if len(row) > 1 else row[0] > 0.5) == int(label))
print(json.dumps({"accuracy": sum(right) / len(right), "classes": len(row), "sum": float(sum(row))}))
"""


@pytest.fixture(scope="module")
def images(project: Project, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The URI of each codelab's image, which stands for its source tree."""
    trees = tmp_path_factory.mktemp("codelabs") / "trees"
    shutil.copytree(CODELABS, trees, ignore=shutil.ignore_patterns("__pycache__"))
    if not THOROUGH:
        (trees / "multi_worker" / "trainer" / "__init__.py").write_text(SMALL_NETWORK)
        run_uv("pip", "install", "--no-deps", "--target", str(trees / "tuning"), "cloudml-hypertune")
        dockerfile = trees / "tuning" / "Dockerfile"
        text = dockerfile.read_text().replace(
            "RUN pip install cloudml-hypertune", "COPY hypertune /hypertune"
        )
        dockerfile.write_text(text)
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


def evaluated(model_dir: Path, data_dir: Path, *split_and_size: str) -> dict[str, float]:
    """What EVALUATE prints for a data set, its split and the images' size: computed as a server would compute it."""
    command = [sys.executable, "-c", EVALUATE, str(model_dir), str(data_dir), *split_and_size]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def folder_of(project: Project, uri: str) -> Path:
    bucket, _, name = uri.removeprefix("gs://").partition("/")
    return project.folder(bucket) / name


def test_multi_worker_training_goes_from_a_request_to_a_model_that_classifies_leaves(
    project: Project, images: dict[str, str], variables: dict[str, str], leaves: Path
) -> None:
    request = {**REQUESTS["multi_worker"], "args": SMALL["multi_worker"], "env": variables}
    model = ended_run(project, "cassava", request)["model"]
    assert model["format"] == "saved_model"
    assert model["uri"].startswith(f"gs://{project.models}/codelab-cassava/")
    assert not any("workertemp" in name for name in names_below(project, model["uri"]))
    assert model["metrics"] == {}, "the codelab evaluates nothing that could be compared"
    answer = evaluated(folder_of(project, model["uri"]), leaves, "cassava", "validation", "64")
    assert answer["classes"] == 5
    assert answer["sum"] == pytest.approx(1, abs=1e-5)


def test_tuning_goes_from_a_request_to_a_record_with_the_best_trials_model(
    project: Project, images: dict[str, str], variables: dict[str, str], figures: Path
) -> None:
    tuning = {**REQUESTS["tuning"]["tuning"], "max_trials": TRIALS, "parallel_trials": TRIALS}
    request = {**REQUESTS["tuning"], "args": SMALL["tuning"], "env": variables, "tuning": tuning}
    record = ended_run(project, "horses", request)
    assert record["model"]["format"] == "saved_model"
    assert record["model"]["uri"] == record["tuning"]["best_trial"]["model_uri"]
    assert len(record["tuning"]["trials"]) == TRIALS
    saved = evaluated(folder_of(project, record["model"]["uri"]), figures, "horses_or_humans", "test", "32")
    assert saved["accuracy"] == pytest.approx(record["tuning"]["best_trial"]["value"], abs=1e-6)


@pytest.mark.parametrize(
    ("workload", "split"),
    [("resnet50", ("cassava", "validation", "64")), ("horses_or_humans", ("horses_or_humans", "test", "32"))],
)
def test_the_trainers_workload_exports_the_metrics_that_its_signature_reaches(
    workload: str, split: tuple[str, str, str], leaves: Path, figures: Path, tmp_path: Path
) -> None:
    data_dir = leaves if workload == "resnet50" else figures
    program = f"import os, sys, trainer.task\n{'' if THOROUGH else SMALL_NETWORK}\ntrainer.task.main(sys.argv[1:], os.environ)"
    arguments = [f"--workload={workload}", f"--data_dir={data_dir}", f"--image_size={split[2]}", "--epochs=2"]
    arguments += ["--batch_size=4", "--weights=random", f"--job_dir={tmp_path}"]
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    exported = json.loads((tmp_path / "model" / "export.json").read_text())["metrics"]["val_accuracy"]
    assert evaluated(tmp_path / "model", data_dir, *split)["accuracy"] == pytest.approx(exported, abs=1e-6)
