"""Google's codelab trainers run here unchanged after `docker build`, whichever client creates the job.

tests/e2e/images/cassava is that of multi-worker training, whose program writes to a fixed path in a bucket;
tests/e2e/images/horses that of hyperparameter tuning, which reports with cloudml-hypertune.
In every run of the tests a small network stands for the first one's ResNet50, and a request alone asks for it; with
TRAINMASTER_TEST_CODELABS=1 both are trained as they are and asked for in every way, in about ten minutes.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud.aiplatform_v1.types import CustomJobSpec, JobState
from google.protobuf.json_format import MessageToDict

from .project import ROOT, Project

THOROUGH = os.environ.get("TRAINMASTER_TEST_CODELABS") == "1"
DEADLINE_S = 900 if THOROUGH else 300
pytestmark = [pytest.mark.slow(seconds=60), pytest.mark.timeout(DEADLINE_S + 120)]

GCLOUD = shutil.which("gcloud")
IMAGES = Path(__file__).parent / "images"
CASSAVA_MODEL_URI = "gs://e2e-shared-models/codelab/mwms"  # as written in the program
MACHINE = "n1-standard-4"


@pytest.fixture(scope="module")
def images(project: Project) -> dict[str, str]:
    """The URI of each codelab's image, which stands for its source tree."""
    uris = {"cassava": f"gcr.io/{project.id}/multiworker", "horses": f"gcr.io/{project.id}/horse-human"}
    trees = [f"{uri}={IMAGES / name}" for name, uri in uris.items()]
    command = [sys.executable, "-m", "trainmaster", "stack", "provide", *trees, "--state", str(project.state)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return {name: f"{uri}:1" for name, uri in uris.items()}


@pytest.fixture(scope="module")
def variables(project: Project, leaves: Path, request: pytest.FixtureRequest) -> dict[str, str]:
    """What makes TFDS look in the data bucket, where a small cassava and horses_or_humans lie in their own formats."""
    bucket = project.storage.bucket(project.env["TRAINMASTER_DATA_BUCKET"])
    folders = [leaves, request.getfixturevalue("figures")] if THOROUGH else [leaves]
    for folder in folders:
        for path in (path for path in folder.rglob("*") if path.is_file()):
            bucket.blob(f"codelabs/{path.relative_to(folder)}").upload_from_filename(path)
    small = {} if THOROUGH else {"CODELAB_NETWORK": "small"}
    return {"TFDS_DATA_DIR": f"gs://{bucket.name}/codelabs", **small}


def pool(image_uri: str, variables: dict[str, str]) -> dict[str, Any]:
    env = [{"name": name, "value": value} for name, value in variables.items()]
    return {
        "machine_spec": {"machine_type": MACHINE},
        "replica_count": 1,
        "container_spec": {"image_uri": image_uri, "env": env},
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


def forget_models(project: Project) -> None:
    """Remove what an earlier job left at the program's path."""
    bucket = project.storage.bucket(project.models)
    bucket.delete_blobs(list(bucket.list_blobs(prefix="codelab/")))


def assert_both_saved(project: Project) -> None:
    """The chief saved to the program's path, and the worker to a temporary directory beside it."""
    beside = f"{CASSAVA_MODEL_URI.rpartition('/')[0]}/workertemp_0/mwms"
    for uri in (CASSAVA_MODEL_URI, beside):
        assert {"saved_model.pb", "variables/variables.index"} <= names_below(project, uri)


def test_multi_worker_training_goes_from_a_request_to_a_record_with_the_programs_own_path(
    project: Project, images: dict[str, str], variables: dict[str, str]
) -> None:
    request = {
        "model_name": "codelab-cassava",
        "image": images["cassava"],
        "env": variables,
        "cluster": {"chief": {"machine": MACHINE}, "workers": {"count": 1, "machine": MACHINE}},
        "model_uri": CASSAVA_MODEL_URI,
    }
    model = ended_run(project, "cassava", request)["model"]
    assert (model["uri"].rstrip("/"), model["format"]) == (CASSAVA_MODEL_URI, "saved_model")
    assert_both_saved(project)


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

    def test_multi_worker_training_goes_from_the_sdk_to_a_model_in_the_bucket(
        project: Project, images: dict[str, str], variables: dict[str, str], sdk: None
    ) -> None:
        forget_models(project)
        replica = pool(images["cassava"], variables)
        job = aiplatform.CustomJob(display_name="multiworker-cassava", worker_pool_specs=[replica, replica])
        job.run(sync=True)
        assert job.state.name == "JOB_STATE_SUCCEEDED", project.tail()
        assert_both_saved(project)

    def test_tuning_goes_from_the_sdk_to_a_model_of_each_trial(
        project: Project, images: dict[str, str], variables: dict[str, str], sdk: None
    ) -> None:
        trial = pool(images["horses"], variables)
        job = aiplatform.HyperparameterTuningJob(
            display_name="horses-humans-hptuning",
            custom_job=aiplatform.CustomJob(display_name="horses-humans", worker_pool_specs=[trial]),
            metric_spec={"accuracy": "maximize"},
            parameter_spec={
                "learning_rate": hpt.DoubleParameterSpec(min=0.01, max=1, scale="log"),
                "momentum": hpt.DoubleParameterSpec(min=0, max=1, scale="linear"),
                "num_neurons": hpt.DiscreteParameterSpec(values=[64, 128, 512], scale=None),  # type: ignore[arg-type]  # as in the codelab
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

    def test_tuning_goes_from_a_request_to_a_record_with_the_best_trials_model(
        project: Project, images: dict[str, str], variables: dict[str, str]
    ) -> None:
        request = {
            "model_name": "codelab-horses",
            "image": images["horses"],
            "env": variables,
            "cluster": {"chief": {"machine": MACHINE}},
            "tuning": {
                "metrics": [{"id": "accuracy", "goal": "maximize"}],
                "parameters": {
                    "learning_rate": {"type": "double", "min": 0.01, "max": 1, "scale": "log"},
                    "momentum": {"type": "double", "min": 0, "max": 1, "scale": "linear"},
                    "num_neurons": {"type": "discrete", "values": [64, 128, 512]},
                },
                "max_trials": 2,
                "parallel_trials": 2,
            },
        }
        record = ended_run(project, "horses", request)
        assert record["model"]["format"] == "saved_model"
        assert record["model"]["uri"] == record["tuning"]["best_trial"]["model_uri"]
        assert len(record["tuning"]["trials"]) == 2


if THOROUGH and GCLOUD is not None:
    # Not collected on a machine without gcloud: nothing there can say whether it would pass.

    def gcloud(project: Project, tmp_path: Path, *words: str, config: dict[str, Any]) -> dict[str, Any]:
        """What gcloud prints of the job that it creates from a configuration."""
        (tmp_path / "config.json").write_text(json.dumps(config))  # JSON is YAML
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "CLOUDSDK_CONFIG": str(tmp_path / "gcloud"),
            "CLOUDSDK_CORE_PROJECT": project.id,
            "CLOUDSDK_CORE_DISABLE_PROMPTS": "1",
            "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING": "true",
            "CLOUDSDK_AI_REGION": project.region,
            "CLOUDSDK_AUTH_DISABLE_CREDENTIALS": "true",
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM": f"{project.env['VERTEX_EMULATOR_HOST']}/",
        }
        command = [str(GCLOUD), "ai", *words, "--display-name=codelab", "--format=json"]
        command.append(f"--config={tmp_path / 'config.json'}")
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def camel_cased(spec: CustomJobSpec) -> dict[str, Any]:
        found: dict[str, Any] = MessageToDict(CustomJobSpec.pb(spec))
        return found

    def test_multi_worker_training_goes_from_gcloud_to_a_model_in_the_bucket(
        project: Project, images: dict[str, str], variables: dict[str, str], tmp_path: Path
    ) -> None:
        forget_models(project)
        replica = pool(images["cassava"], variables)
        config = camel_cased(CustomJobSpec(worker_pool_specs=[replica, replica]))
        name = gcloud(project, tmp_path, "custom-jobs", "create", config=config)["name"]
        project.eventually(
            lambda: project.vertex.get_custom_job(name=name).state == JobState.JOB_STATE_SUCCEEDED,
            f"success of {name}",
            deadline_s=DEADLINE_S,
        )
        assert_both_saved(project)

    def test_tuning_goes_from_gcloud_to_a_model_of_each_trial(
        project: Project, images: dict[str, str], variables: dict[str, str], tmp_path: Path
    ) -> None:
        base = f"gs://{project.models}/codelab-gcloud"
        trial = CustomJobSpec(worker_pool_specs=[pool(images["horses"], variables)])
        trial.base_output_directory.output_uri_prefix = base
        parameters = [
            {"parameterId": "learning_rate", "doubleValueSpec": {"minValue": 0.01, "maxValue": 1},
             "scaleType": "UNIT_LOG_SCALE"},
            {"parameterId": "momentum", "doubleValueSpec": {"minValue": 0, "maxValue": 1}},
            {"parameterId": "num_neurons", "discreteValueSpec": {"values": [64, 128, 512]}},
        ]  # fmt: skip
        study = {"metrics": [{"metricId": "accuracy", "goal": "MAXIMIZE"}], "parameters": parameters}
        config = {"studySpec": study, "trialJobSpec": camel_cased(trial)}
        words = ("hp-tuning-jobs", "create", "--max-trial-count=2", "--parallel-trial-count=2")
        name = gcloud(project, tmp_path, *words, config=config)["name"]
        project.eventually(
            lambda: (
                project.vertex.get_hyperparameter_tuning_job(name=name).state == JobState.JOB_STATE_SUCCEEDED
            ),
            f"success of {name}",
            deadline_s=DEADLINE_S,
        )
        for number in ("1", "2"):
            assert "saved_model.pb" in names_below(project, f"{base}/{number}/model")
