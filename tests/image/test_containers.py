"""Replicas as containers: what a replica sees, writes and ends with, as it does as a process."""

import functools
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.cloud.aiplatform_v1.types import HyperparameterTuningJob

from tests.processes import run_to_end
from tests.stack.jobs.conftest import PARENT, Stack, container, run_stack, stand_alone
from tests.stack.jobs.studies import REPORT, X, ended
from tests.stack.waiting import wait_until
from trainmaster.deploy.local_image import Builder
from trainstack.jobs.replicas.containers import LABEL

from .conftest import ROOT, needs

pytestmark = [pytest.mark.slow, needs("runtime"), pytest.mark.timeout(900)]

NAME = "us-central1-docker.pkg.dev/project-1/repository/program"
DOCKERFILE = """
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
ENV FROM_IMAGE="set in the image"
WORKDIR /app
COPY program /app/program
USER 10001:10001
ENTRYPOINT ["python3", "-m", "program.main"]
CMD ["print=from CMD"]
"""


@pytest.fixture(scope="module")
def program(build: Builder, base: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The program of the process runtime's tests, in a separate image, under a registry's name."""
    tree = tmp_path_factory.mktemp("program")
    shutil.copytree(ROOT / "tests/stack/jobs/images/program/program", tree / "program")
    tags = {f"{NAME}:1": DOCKERFILE, f"{NAME}:root": DOCKERFILE.replace("USER 10001:10001\n", "")}
    for tag, dockerfile in tags.items():
        (tree / "Dockerfile").write_text(dockerfile)
        build.build(context=tree, tag=tag, options=("--build-arg", f"BASE_IMAGE={base}"))
    yield f"{NAME}:1"
    subprocess.run(["podman", "rmi", "--force", *tags], check=False, capture_output=True)


@pytest.fixture
def stack(tmp_path: Path, program: str) -> Iterator[Stack]:
    with run_stack(tmp_path, runtime="container", grace_s=10) as running:
        yield running
    assert containers_of(tmp_path) == [], "a container outlived its stack"


def containers_of(directory: Path) -> list[str]:
    label = f"label={LABEL}={(directory / 'state').resolve()}"
    listed = run_to_end(["podman", "ps", "--all", "--quiet", "--filter", label], check=True)
    return listed.stdout.split()


def is_ready(stack: Stack, job_name: str) -> bool:
    return "ready" in stack.texts(job_name)


def ours(*words: str, **more: Any) -> dict[str, Any]:
    return container(*words, image=f"{NAME}:1", **more)


def test_a_replica_is_the_images_user_on_its_files_with_the_services_variables(stack: Stack) -> None:
    several = "two\nlines"
    env = [{"name": "GREETING", "value": "hello"}, {"name": "SEVERAL", "value": several},
           {"name": "DIRECTORY", "value": "$(AIP_MODEL_DIR)"}]  # fmt: skip
    (stack.buckets / "models").mkdir(exist_ok=True)
    output = {"output_uri_prefix": "gs://models/x/y"}
    job = stack.submit(ours("tell", env=env), base_output_directory=output)
    assert stack.ended(job.name).state.name == "JOB_STATE_SUCCEEDED", stack.texts(job.name)
    told = stack.told(job.name)
    assert told["cwd"] == "/app"
    seen = told["environ"]
    assert seen["FROM_IMAGE"] == "set in the image"
    assert (seen["GREETING"], seen["SEVERAL"]) == ("hello", several)
    assert seen["AIP_MODEL_DIR"] == seen["DIRECTORY"] == "gs://models/x/y/model/"
    assert seen["CLOUD_ML_JOB_ID"] == job.name.rpartition("/")[2]
    assert "TRAINMASTER_GCS_ROOT" not in seen
    assert not [name for name in seen if name.startswith(("PYTEST", "VIRTUAL_ENV", "STORAGE_"))]


def test_what_it_writes_under_gcs_is_in_the_bucket(stack: Stack) -> None:
    job = stack.submit(ours("write=models/deep/down.txt"))
    assert stack.ended(job.name).state.name == "JOB_STATE_SUCCEEDED", stack.texts(job.name)
    assert (stack.buckets / "models/deep/down.txt").read_text() == "workerpool0-0"


def test_a_replica_that_is_killed_is_started_again(stack: Stack) -> None:
    job = stack.submit(ours("print=ready", "sleep_once=b/mark", "print=alive again"))
    wait_until((stack.buckets / "b/mark").exists, "it sleeps")
    (name,) = containers_of(stack.buckets.parent)
    subprocess.run(["podman", "kill", "--signal", "KILL", name], check=True, capture_output=True)
    assert stack.ended(job.name).state.name == "JOB_STATE_SUCCEEDED", stack.texts(job.name)
    assert stack.texts(job.name, "workerpool0-0") == ["ready", "ready", "alive again"]


def test_cancelling_sends_sigterm_and_after_the_grace_sigkill(stack: Stack) -> None:
    polite = stack.submit(ours("polite", "print=ready", "sleep=600"))
    deaf = stack.submit(ours("deaf", "print=ready", "sleep=600"))
    for job in (polite, deaf):
        wait_until(functools.partial(is_ready, stack, job.name), "it runs")
        stack.jobs.cancel_custom_job(name=job.name)
        assert stack.ended(job.name).state.name == "JOB_STATE_CANCELLED"
    assert stack.texts(polite.name, "workerpool0-0") == ["ready", "told to end"]
    assert stack.texts(deaf.name, "workerpool0-0") == ["ready"]


def tuned(stack: Stack, tag: str) -> HyperparameterTuningJob:
    """A study of two trials of the image with this tag, ended."""
    pool = container("-c", REPORT + "report(x, 1)", command=["python3"], image=f"{NAME}:{tag}")
    study: Any = {
        "display_name": "a study",
        "max_trial_count": 2,
        "parallel_trial_count": 2,
        "study_spec": {"metrics": [{"metric_id": "accuracy", "goal": "MAXIMIZE"}], "parameters": [X]},
        "trial_job_spec": {"worker_pool_specs": [pool]},
    }
    job = stack.jobs.create_hyperparameter_tuning_job(parent=PARENT, hyperparameter_tuning_job=study)
    done: HyperparameterTuningJob = ended(stack, job.name)
    return done


def test_trials_of_a_tuning_report_their_metrics_out_of_their_containers(stack: Stack) -> None:
    done = tuned(stack, "root")
    assert done.state.name == "JOB_STATE_SUCCEEDED", done
    for trial in done.trials:
        assert trial.final_measurement.metrics[0].value == pytest.approx(trial.parameters[0].value)


def test_a_trial_cannot_report_as_another_user_than_root(stack: Stack) -> None:
    assert tuned(stack, "1").state.name == "JOB_STATE_FAILED"


def test_a_stack_that_is_killed_leaves_no_container(tmp_path: Path, program: str) -> None:
    with stand_alone(tmp_path, runtime="container") as (process, stack):
        stack.submit(ours("write=b/mark", "sleep=600"), ours("sleep=600", replicas=2))
        wait_until((tmp_path / "buckets/b/mark").exists, "it runs")
        wait_until(lambda: len(containers_of(tmp_path)) == 3, "all three run")
        process.kill()
        process.wait()
    wait_until(lambda: containers_of(tmp_path) == [], "no container is left")
