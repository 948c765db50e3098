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


def training(name: str, *words: str) -> Any:
    from google.cloud import aiplatform

    job = aiplatform.CustomContainerTrainingJob(display_name=name, container_uri=f"{PROGRAM}:latest")
    job.submit(args=list(words))
    return job


def test_a_pipeline_runs_until_its_job_ends_or_it_is_cancelled(stack: Stack) -> None:
    held, done = training("held", "wait=staging/never"), training("done", "print=x")
    wait_until(lambda: held.state.name == "PIPELINE_STATE_RUNNING")
    wait_until(lambda: done.state.name == "PIPELINE_STATE_SUCCEEDED")
    held.cancel()
    wait_until(lambda: held.state.name == "PIPELINE_STATE_CANCELLED")
    with pytest.raises(exceptions.BadRequest, match="JOB_STATE_CANCELLED and cannot be cancelled"):
        held.cancel()
    assert {job.display_name for job in type(held).list()} == {"held", "done"}


def test_a_run_of_an_experiment_has_its_parameters_metrics_and_end(stack: Stack) -> None:
    from google.cloud import aiplatform

    aiplatform.init(experiment="cats", experiment_tensorboard=False)
    for number, rate in enumerate((0.1, 0.01)):
        aiplatform.start_run(f"run-{number}")
        aiplatform.log_params({"rate": rate})
        for accuracy in (0.5, 0.5 + number / 4):
            aiplatform.log_metrics({"accuracy": accuracy})
        aiplatform.end_run()
    first, second = sorted(aiplatform.ExperimentRun.list(experiment="cats"), key=lambda run: run.name)
    assert (second.get_params(), second.get_state()) == ({"rate": 0.01}, "COMPLETE")
    assert [run.get_metrics() for run in (first, second)] == [{"accuracy": 0.5}, {"accuracy": 0.75}]
