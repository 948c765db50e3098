"""Tuning jobs over REST with the official client; trials are real processes."""

import time
from collections.abc import Callable
from typing import Any

import pytest
from google.api_core.exceptions import BadRequest, NotFound
from google.cloud import aiplatform_v1

from .conftest import PARENT, Stack, container

REPORT = """
import json, os, pathlib, sys, time
flags = dict(word[2:].split("=") for word in sys.argv[1:])
path = pathlib.Path(os.environ["CLOUD_ML_HP_METRIC_FILE"])
lines = []
def report(value, step, tag="accuracy"):
    lines.append(json.dumps({tag: str(value), "global_step": str(step), "timestamp": time.time(),
                             "trial": os.environ["CLOUD_ML_TRIAL_ID"], "checkpoint_path": ""}))
    path.write_text("\\n".join(lines) + "\\n")
x = float(flags["x"])
print(json.dumps({"message": "told", "argv": sys.argv[1:], "environ": dict(os.environ)}), flush=True)
"""

X = {"parameter_id": "x", "double_value_spec": {"min_value": 0.0, "max_value": 1.0}}


def study(stack: Stack, body: str, *, spec: Any = None, job_spec: Any = None, **counts: int) -> Any:
    pool = container("-c", REPORT + body, command=["python"])
    job: Any = {
        "display_name": "a study",
        "max_trial_count": 4,
        "parallel_trial_count": 2,
        "study_spec": {"metrics": [{"metric_id": "accuracy", "goal": "MAXIMIZE"}], "parameters": [X]}
        | (spec or {}),
        "trial_job_spec": {"worker_pool_specs": [pool], **(job_spec or {})},
        **counts,
    }
    return stack.jobs.create_hyperparameter_tuning_job(parent=PARENT, hyperparameter_tuning_job=job)


def until(stack: Stack, name: str, condition: Callable[[Any], bool]) -> Any:
    deadline = time.monotonic() + 60
    while not condition(job := stack.jobs.get_hyperparameter_tuning_job(name=name)):
        assert time.monotonic() < deadline, job
        time.sleep(0.05)
    return job


def ended(stack: Stack, name: str) -> Any:
    return until(
        stack, name, lambda job: job.state.name.rpartition("_")[2] in {"SUCCEEDED", "FAILED", "CANCELLED"}
    )


def test_trials_are_filled_as_the_service_fills_them(stack: Stack) -> None:
    body = "report(x / 2, 1); report(x, 2); report(x / 4, 3)"
    job = study(
        stack,
        body,
        spec={"measurement_selection_type": "BEST_MEASUREMENT"},
        job_spec={"base_output_directory": {"output_uri_prefix": "gs://b/out"}},
    )
    done = ended(stack, job.name)
    assert done.state.name == "JOB_STATE_SUCCEEDED", done
    assert [trial.id for trial in done.trials] == ["1", "2", "3", "4"]
    for trial in done.trials:
        assert trial.state.name == "SUCCEEDED"
        assert [one.step_count for one in trial.measurements] == [1, 2, 3]
        assert trial.final_measurement.step_count == 2
        assert trial.final_measurement.metrics[0].value == pytest.approx(trial.parameters[0].value)
        assert trial.start_time <= trial.end_time
        assert stack.jobs.get_custom_job(name=trial.custom_job).state.name == "JOB_STATE_SUCCEEDED"
    told = [entry for entry in stack.logged(job.name, "workerpool0-0") if "jsonPayload" in entry]
    assert {entry["labels"]["ml.googleapis.com/trial_id"] for entry in told} == {"1", "2", "3", "4"}
    environ = told[0]["jsonPayload"]["environ"]
    trial_id = environ["CLOUD_ML_TRIAL_ID"]
    assert environ["AIP_MODEL_DIR"] == f"gs://b/out/{trial_id}/model/"
    assert environ["CLOUD_ML_HP_METRIC_TAG"] == "accuracy"
    assert f'"trial": "{trial_id}"' in environ["CLUSTER_SPEC"]
    assert list(stack.jobs.list_custom_jobs(parent=PARENT)) == []
    listed = list(stack.jobs.list_hyperparameter_tuning_jobs(parent=PARENT))
    assert [(one.name, len(one.trials)) for one in listed] == [(job.name, 0)]
    stack.jobs.delete_hyperparameter_tuning_job(name=job.name)
    with pytest.raises(NotFound):
        stack.jobs.get_hyperparameter_tuning_job(name=job.name)


def test_a_trial_without_its_metric_is_infeasible_and_the_first_one_ends_the_job(stack: Stack) -> None:
    done = ended(stack, study(stack, "report(x, 1, tag='acc')", parallel_trial_count=1).name)
    assert done.state.name == "JOB_STATE_FAILED"
    assert [trial.state.name for trial in done.trials] == ["INFEASIBLE"]
    assert "'accuracy'; it reported ['acc']" in done.trials[0].infeasible_reason


def test_as_many_failed_trials_as_allowed_end_the_job(stack: Stack) -> None:
    done = ended(stack, study(stack, "sys.exit(3)", parallel_trial_count=1, max_failed_trial_count=2).name)
    assert done.state.name == "JOB_STATE_FAILED"
    assert len(done.trials) == 2
    assert "non-zero status of 3" in done.trials[0].infeasible_reason


def test_cancelling_ends_every_replica_of_every_trial(stack: Stack) -> None:
    job = study(stack, "time.sleep(600)")
    until(stack, job.name, lambda job: [trial.state.name for trial in job.trials] == ["ACTIVE", "ACTIVE"])
    stack.jobs.cancel_hyperparameter_tuning_job(name=job.name)
    done = ended(stack, job.name)
    assert (done.state.name, done.error.code) == ("JOB_STATE_CANCELLED", 1)
    assert len(done.trials) == 2
    states = {stack.jobs.get_custom_job(name=trial.custom_job).state.name for trial in done.trials}
    assert states == {"JOB_STATE_CANCELLED"}


def test_a_grid_is_tried_once_each_and_ends_before_the_maximum(stack: Stack) -> None:
    spec = {
        "algorithm": "GRID_SEARCH",
        "parameters": [{"parameter_id": "x", "discrete_value_spec": {"values": [1, 2, 8]}}],
    }
    done = ended(stack, study(stack, "report(x, 1)", spec=spec, max_trial_count=9).name)
    assert [trial.parameters[0].value for trial in done.trials] == [1, 2, 8]
    assert done.state.name == "JOB_STATE_SUCCEEDED"


def test_a_study_goes_on_after_the_stack_was_stopped(start: Callable[..., Any]) -> None:
    with start(grace_s=0.1) as stack:
        body = "report(x, 1)\nif os.environ['CLOUD_ML_TRIAL_ID'] == '2':\n    wait = pathlib.Path(os.environ.get('TRAINMASTER_GCS_ROOT', '/gcs')) / 'go'\n    while not wait.exists(): time.sleep(0.01)"
        name = study(stack, body, parallel_trial_count=1, max_trial_count=3).name
        until(stack, name, lambda job: len(job.trials) == 2 and job.trials[1].state.name == "ACTIVE")
    with start() as stack:
        (stack.buckets / "go").touch()
        done = ended(stack, name)
        assert done.state.name == "JOB_STATE_SUCCEEDED"
        assert [trial.state.name for trial in done.trials] == ["SUCCEEDED"] * 3


def test_all_faults_of_a_study_come_at_once(stack: Stack) -> None:
    parameters = [
        {"parameter_id": "x", "double_value_spec": {"min_value": 2, "max_value": 1}},
        {
            "parameter_id": "y",
            "integer_value_spec": {"min_value": 0, "max_value": 3},
            "scale_type": "UNIT_LOG_SCALE",
        },
        {"parameter_id": "z", "categorical_value_spec": {"values": ["a", "a"]}},
    ]
    with pytest.raises(BadRequest) as refused:
        study(stack, "", spec={"algorithm": "GRID_SEARCH", "parameters": parameters}, parallel_trial_count=9)
    for part in ("parallel_trial_count", "above max_value", "GRID_SEARCH takes no double",
                 "parameters[1].integer_value_spec.min_value", "'a' is there more than once"):  # fmt: skip
        assert part in str(refused.value)


def test_a_trial_below_the_median_is_stopped_early_and_keeps_its_result(stack: Stack) -> None:
    body = (
        "last = os.environ['CLOUD_ML_TRIAL_ID'] == '4'\nreport(-1 if last else 1, 1)\n"
        "if last: time.sleep(600)"
    )
    spec = {"median_automated_stopping_spec": aiplatform_v1.StudySpec.MedianAutomatedStoppingSpec()}
    done = ended(stack, study(stack, body, spec=spec, parallel_trial_count=1).name)
    assert done.state.name == "JOB_STATE_SUCCEEDED"
    assert done.trials[3].final_measurement.metrics[0].value == -1
    job = stack.jobs.get_custom_job(name=done.trials[3].custom_job)
    assert job.state.name == "JOB_STATE_CANCELLED"
