"""Pipelines, models and experiments by the high-level SDK, unmodified, over REST.

It is imported where it is used: each worker imports every test module, and one of them runs this one.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials

from tests.stack.jobs.conftest import PROGRAM, Stack, run_stack
from tests.stack.waiting import wait_until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    from google.cloud import aiplatform

    with run_stack(tmp_path_factory.mktemp("stack")) as running:
        (running.buckets / "staging").mkdir()
        aiplatform.init(
            project="p1", location="us-central1", staging_bucket="gs://staging", credentials=AnonymousCredentials(),
            api_endpoint=running.url, api_transport="rest",
        )  # fmt: skip
        yield running
        aiplatform.initializer.global_pool.shutdown(wait=True)


def training(*words: str) -> Any:
    from google.cloud import aiplatform

    job = aiplatform.CustomContainerTrainingJob(display_name="trained", container_uri=f"{PROGRAM}:latest")
    job.submit(args=list(words))
    return job


def test_a_pipeline_runs_until_its_job_ends_or_it_is_cancelled(stack: Stack) -> None:
    held, failed, done = training("wait=staging/never"), training("exit=3"), training("print=x")
    wait_until(lambda: held.state.name == "PIPELINE_STATE_RUNNING")
    assert not held.has_failed
    wait_until(lambda: failed.state.name == "PIPELINE_STATE_FAILED")
    assert "non-zero status of 3" in failed._gca_resource.error.message
    wait_until(lambda: done.state.name == "PIPELINE_STATE_SUCCEEDED")
    assert done.start_time <= done.end_time
    held.cancel()
    wait_until(lambda: held.state.name == "PIPELINE_STATE_CANCELLED")
    with pytest.raises(exceptions.BadRequest, match="JOB_STATE_CANCELLED and cannot be cancelled"):
        held.cancel()
    assert [held.state.name, done.state.name] == ["PIPELINE_STATE_CANCELLED", "PIPELINE_STATE_SUCCEEDED"]
    assert {job.name for job in type(held).list()} == {held.name, failed.name, done.name}


def test_a_model_has_versions_and_an_alias_is_of_one_of_them(stack: Stack) -> None:
    from google.cloud import aiplatform

    def upload(**more: Any) -> Any:
        uri = "gs://staging/m"
        return aiplatform.Model.upload(
            display_name="cats", artifact_uri=uri, serving_container_image_uri="serving", **more
        )

    (stack.buckets / "staging/m").mkdir()
    (stack.buckets / "staging/m/weights").write_text("w")
    first = upload(model_id="cats", version_aliases=["live"])
    second = upload(parent_model="cats", is_default_version=False)
    assert (first.version_id, second.version_id) == ("1", "2")
    registry = first.versioning_registry
    registry.add_version_aliases(["live", "default"], version="2")
    versions = {one.version_id: set(one.version_aliases or ()) for one in registry.list_versions()}
    assert versions == {"1": set(), "2": {"live", "default"}}
    assert aiplatform.Model("cats").version_id == aiplatform.Model("cats@live").version_id == "2"
    registry.delete_version("1")
    assert [one.version_id for one in registry.list_versions()] == ["2"]


def test_a_run_of_an_experiment_has_its_parameters_metrics_and_end(stack: Stack) -> None:
    from google.cloud import aiplatform

    aiplatform.init(experiment="cats", experiment_tensorboard=False)
    for number, rate in enumerate((0.1, 0.01)):
        aiplatform.start_run(f"run-{number}")
        aiplatform.log_params({"rate": rate, "optimizer": "adam"})
        aiplatform.log_metrics({"accuracy": 0.5})
        aiplatform.log_metrics({"accuracy": 0.5 + number / 4})
        aiplatform.end_run()
    runs = {run.name: run for run in aiplatform.ExperimentRun.list(experiment="cats")}
    assert sorted(runs) == ["run-0", "run-1"]
    assert runs["run-1"].get_params() == {"rate": 0.01, "optimizer": "adam"}
    assert [runs[name].get_metrics() for name in sorted(runs)] == [{"accuracy": 0.5}, {"accuracy": 0.75}]
    assert runs["run-0"].get_state() == "COMPLETE"
    runs["run-0"].delete()
    assert [run.name for run in aiplatform.ExperimentRun.list(experiment="cats")] == ["run-1"]
