"""The high-level SDK, unmodified, over REST.

It is imported where it is used: each worker imports every test module, and one of them runs this one.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials

from tests.stack.waiting import wait_until

from .conftest import PROGRAM, Stack, container
from .studies import REPORT

pytestmark = pytest.mark.slow  # run() polls every five seconds

if TYPE_CHECKING:
    from google.cloud import aiplatform


@pytest.fixture(scope="module", autouse=True)
def _no_thread_of_the_sdk_is_left() -> Iterator[None]:
    yield
    from google.cloud import aiplatform

    aiplatform.initializer.global_pool.shutdown(wait=True)


@pytest.fixture
def sdk(stack: Stack) -> Stack:
    from google.cloud import aiplatform

    (stack.buckets / "staging").mkdir()
    # project= must be given: without it the SDK asks the Resource Manager on the internet.
    aiplatform.init(
        project="p1", location="us-central1", staging_bucket="gs://staging", credentials=AnonymousCredentials(),
        api_endpoint=stack.url, api_transport="rest",
    )  # fmt: skip
    return stack


def tuning(body: str, **more: Any) -> "aiplatform.HyperparameterTuningJob":
    from google.cloud import aiplatform
    from google.cloud.aiplatform import hyperparameter_tuning as hpt

    pool = container("-c", REPORT + body, command=["python"])
    return aiplatform.HyperparameterTuningJob(
        display_name="tuned",
        custom_job=aiplatform.CustomJob(display_name="a trial", worker_pool_specs=[pool]),
        metric_spec={"accuracy": "maximize"},
        parameter_spec={
            "x": hpt.DoubleParameterSpec(min=0.001, max=1, scale="log"),
            "layers": hpt.IntegerParameterSpec(min=1, max=4, scale="linear"),
            "batch": hpt.DiscreteParameterSpec(values=[16, 32, 128], scale="linear"),
            "kind": hpt.CategoricalParameterSpec(
                values=["plain", "momentum"],
                conditional_parameter_spec={
                    "momentum": hpt.DoubleParameterSpec(
                        min=0, max=1, scale="linear", parent_values=["momentum"]
                    )
                },
            ),
        },
        max_trial_count=4,
        parallel_trial_count=2,
        **more,
    )


def test_a_study_is_run_to_its_end_and_its_trials_are_read(sdk: Stack) -> None:
    from google.cloud import aiplatform

    job = tuning("report(x, 1)", search_algorithm="random", labels={"team": "vision"})
    job.run(sync=True)
    assert job.state.name == "JOB_STATE_SUCCEEDED"
    again = aiplatform.HyperparameterTuningJob.get(job.resource_name)
    assert isinstance(again, aiplatform.HyperparameterTuningJob)
    assert [trial.id for trial in again.trials] == ["1", "2", "3", "4"]
    for trial in again.trials:
        values = {one.parameter_id: one.value for one in trial.parameters}
        assert 0.001 <= values["x"] <= 1
        assert values["layers"] in {1, 2, 3, 4}
        assert values["batch"] in {16, 32, 128}
        assert ("momentum" in values) == (values["kind"] == "momentum")
        assert trial.final_measurement.metrics[0].value == values["x"]
    told = sdk.told(job.resource_name)["environ"]["AIP_MODEL_DIR"]
    assert told.startswith("gs://staging/aiplatform-custom-job-")
    assert told.removesuffix("/model/").rpartition("/")[2] in {"1", "2", "3", "4"}
    found = aiplatform.HyperparameterTuningJob.list(filter="labels.team=vision")
    assert [each.resource_name for each in found] == [job.resource_name]
    job.delete()
    assert aiplatform.HyperparameterTuningJob.list() == []


def training(name: str, *words: str) -> Any:
    from google.cloud import aiplatform

    job = aiplatform.CustomContainerTrainingJob(display_name=name, container_uri=f"{PROGRAM}:latest")
    job.submit(args=list(words))
    return job


def test_a_pipeline_runs_until_its_job_ends_or_it_is_cancelled(sdk: Stack) -> None:
    held, done = training("held", "wait=staging/never"), training("done", "print=x")
    wait_until(lambda: held.state.name == "PIPELINE_STATE_RUNNING")
    wait_until(lambda: done.state.name == "PIPELINE_STATE_SUCCEEDED")
    held.cancel()
    wait_until(lambda: held.state.name == "PIPELINE_STATE_CANCELLED")
    with pytest.raises(exceptions.BadRequest, match="JOB_STATE_CANCELLED and cannot be cancelled"):
        held.cancel()
    assert {job.display_name for job in type(held).list()} == {"held", "done"}


def test_a_run_of_an_experiment_has_its_parameters_metrics_and_end(sdk: Stack) -> None:
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
