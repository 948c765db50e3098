"""The codelabs' programs in examples/codelabs run here as they are, whichever client creates the job.

In every run of the tests a small network stands for ResNet50, and requests alone ask for the programs; with
TRAINMASTER_TEST_CODELABS=1 ResNet50 is trained too, from requests and with the SDK, in about ten minutes.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import pytest
import yaml
from google.auth.credentials import AnonymousCredentials

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
    "tuning": ["--image_size=32", "--epochs=2"],
}
FIXED_URI = "gs://e2e-shared-models/codelab/mwms"  # the codelab's program has such a path in it
MACHINE = "n1-standard-4"
PREDICT = """
import json, sys
import numpy as np, tensorflow as tf
signature = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
(answer,) = signature(tf.zeros(json.loads(sys.argv[3]))).values()
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
    command = [
        sys.executable,
        "-m",
        "trainmaster",
        "stack",
        "provide",
        *provided,
        "--state",
        str(project.state),
    ]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return uris


@pytest.fixture(scope="module")
def variables(project: Project, leaves: Path, figures: Path) -> dict[str, str]:
    """What makes TFDS look in the data bucket, where a small cassava and horses_or_humans lie in their own formats."""
    bucket = project.storage.bucket(project.env["TRAINMASTER_DATA_BUCKET"])
    for folder in (leaves, figures):
        for path in (path for path in folder.rglob("*") if path.is_file()):
            bucket.blob(f"codelabs/{path.relative_to(folder)}").upload_from_filename(path)
    return {"TFDS_DATA_DIR": f"gs://{bucket.name}/codelabs"}


def pool(image_uri: str, variables: dict[str, str], args: list[str]) -> dict[str, Any]:
    env = [{"name": name, "value": value} for name, value in variables.items()]
    return {
        "machine_spec": {"machine_type": MACHINE},
        "replica_count": 1,
        "container_spec": {"image_uri": image_uri, "args": args, "env": env},
    }


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


def predicted(project: Project, uri: str, folder: Path, *, shape: tuple[int, ...]) -> Any:
    """What the saved model answers for black images of that shape, computed as a server would compute it."""
    bucket, _, prefix = uri.removeprefix("gs://").partition("/")
    prefix = f"{prefix.rstrip('/')}/"
    for blob in project.storage.list_blobs(bucket, prefix=prefix):
        if blob.name.endswith("/"):
            continue  # what TensorFlow writes for a folder
        path = folder / "model" / blob.name.removeprefix(prefix)
        path.parent.mkdir(parents=True, exist_ok=True)
        blob.download_to_filename(path)
    done = subprocess.run(
        [sys.executable, "-c", PREDICT, str(folder / "model"), str(folder / "answer.npy"), json.dumps(shape)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return np.load(folder / "answer.npy")


def forget_models(project: Project) -> None:
    """Remove what an earlier job left at the program's path."""
    bucket = project.storage.bucket(project.models)
    bucket.delete_blobs(list(bucket.list_blobs(prefix="codelab/")))


def assert_both_saved(project: Project) -> None:
    """The chief saved to the program's path, and the worker to a temporary directory beside it."""
    beside = f"{FIXED_URI.rpartition('/')[0]}/workertemp_0/mwms"
    for uri in (FIXED_URI, beside):
        assert {"saved_model.pb", "variables/variables.index"} <= names_below(project, uri)


def test_multi_worker_training_goes_from_a_request_to_a_model_that_classifies_leaves(
    project: Project, images: dict[str, str], variables: dict[str, str], tmp_path: Path
) -> None:
    request = {**REQUESTS["multi_worker"], "args": SMALL["multi_worker"], "env": variables}
    model = ended_run(project, "cassava", request)["model"]
    assert model["format"] == "saved_model"
    assert model["uri"].startswith(f"gs://{project.models}/codelab-cassava/")
    assert not any("workertemp" in name for name in names_below(project, model["uri"]))
    leaf_probabilities = predicted(project, model["uri"], tmp_path, shape=(2, 64, 64, 3))
    assert leaf_probabilities.shape == (2, 5)
    assert leaf_probabilities.sum(axis=1) == pytest.approx(1, abs=1e-5)


def test_tuning_goes_from_a_request_to_a_record_with_the_best_trials_model(
    project: Project, images: dict[str, str], variables: dict[str, str], tmp_path: Path
) -> None:
    tuning = {**REQUESTS["tuning"]["tuning"], "max_trials": TRIALS, "parallel_trials": TRIALS}
    request = {**REQUESTS["tuning"], "args": SMALL["tuning"], "env": variables, "tuning": tuning}
    record = ended_run(project, "horses", request)
    assert record["model"]["format"] == "saved_model"
    assert record["model"]["uri"] == record["tuning"]["best_trial"]["model_uri"]
    assert len(record["tuning"]["trials"]) == TRIALS
    human = predicted(project, record["model"]["uri"], tmp_path, shape=(2, 32, 32, 3))
    assert human.shape == (2, 1)
    assert ((human >= 0) & (human <= 1)).all()


if THOROUGH:
    from google.cloud import aiplatform
    from google.cloud.aiplatform import hyperparameter_tuning as hpt

    @pytest.fixture
    def sdk(project: Project) -> Iterator[None]:
        aiplatform.init(
            project=project.id, location=project.region, staging_bucket=f"gs://{project.models}",
            credentials=AnonymousCredentials(), api_endpoint=project.env["VERTEX_EMULATOR_HOST"],
            api_transport="rest",
        )  # fmt: skip
        yield
        aiplatform.initializer.global_pool.shutdown(wait=True)

    def test_multi_worker_training_goes_from_a_request_to_a_record_with_the_programs_own_path(
        project: Project, images: dict[str, str], variables: dict[str, str]
    ) -> None:
        forget_models(project)
        args = [*SMALL["multi_worker"], f"--model_dir={FIXED_URI}"]
        request = {**REQUESTS["multi_worker"], "args": args, "env": variables, "model_uri": FIXED_URI}
        model = ended_run(project, "cassava-fixed", request)["model"]
        assert (model["uri"].rstrip("/"), model["format"]) == (FIXED_URI, "saved_model")
        assert_both_saved(project)

    def test_multi_worker_training_goes_from_the_sdk_to_a_model_in_the_bucket(
        project: Project, images: dict[str, str], variables: dict[str, str], sdk: None
    ) -> None:
        forget_models(project)
        replica = pool(
            images["multi_worker"], variables, [*SMALL["multi_worker"], f"--model_dir={FIXED_URI}"]
        )
        job = aiplatform.CustomJob(display_name="multiworker-cassava", worker_pool_specs=[replica, replica])
        job.run(sync=True)
        assert job.state.name == "JOB_STATE_SUCCEEDED", project.tail()
        assert_both_saved(project)

    def test_tuning_goes_from_the_sdk_to_a_model_of_each_trial(
        project: Project, images: dict[str, str], variables: dict[str, str], sdk: None
    ) -> None:
        trial = pool(images["tuning"], variables, SMALL["tuning"])
        job = aiplatform.HyperparameterTuningJob(
            display_name="horses-humans-hptuning",
            custom_job=aiplatform.CustomJob(display_name="horses-humans", worker_pool_specs=[trial]),
            metric_spec={"accuracy": "maximize"},
            parameter_spec={
                "learning_rate": hpt.DoubleParameterSpec(min=0.001, max=1, scale="log"),
                "momentum": hpt.DoubleParameterSpec(min=0, max=1, scale="linear"),
                "num_units": hpt.DiscreteParameterSpec(values=[64, 128, 512], scale=None),  # type: ignore[arg-type]  # as in the codelab
            },
            max_trial_count=2,
            parallel_trial_count=2,
        )
        job.run(sync=True)
        assert job.state.name == "JOB_STATE_SUCCEEDED", project.tail()
        base = job.to_dict()["trialJobSpec"]["baseOutputDirectory"]["outputUriPrefix"].rstrip("/")
        for number in ("1", "2"):
            assert "saved_model.pb" in names_below(project, f"{base}/{number}/model")
        assert all(0 <= each.final_measurement.metrics[0].value <= 1 for each in job.trials)
