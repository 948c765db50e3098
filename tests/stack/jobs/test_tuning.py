"""Tuning jobs over REST with the official client; trials are real processes."""

import pytest
from google.api_core.exceptions import NotFound

from .conftest import PARENT, Stack
from .studies import ended, study


def test_trials_are_filled_as_the_service_fills_them(stack: Stack) -> None:
    (stack.buckets / "b").mkdir()
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
    spec: dict[str, object] = {"decay_curve_stopping_spec": {}}
    job = study(stack, "report(x, 1, tag='acc')", spec=spec, parallel_trial_count=1)
    done = ended(stack, job.name)
    (said,) = [entry for entry in stack.logged(job.name, "service") if entry["severity"] == "WARNING"]
    assert "decay_curve_stopping_spec" in said["textPayload"], "what has no effect here is in the log"
    assert done.state.name == "JOB_STATE_FAILED"
    assert [trial.state.name for trial in done.trials] == ["INFEASIBLE"]
    assert "'accuracy'; it reported ['acc']" in done.trials[0].infeasible_reason


def test_cancelling_ends_every_replica_of_every_trial(stack: Stack) -> None:
    job = study(stack, "time.sleep(600)")
    stack.until(job.name, lambda job: [trial.state.name for trial in job.trials] == ["ACTIVE", "ACTIVE"])
    stack.jobs.cancel_hyperparameter_tuning_job(name=job.name)
    done = ended(stack, job.name)
    assert (done.state.name, done.error.code) == ("JOB_STATE_CANCELLED", 1)
    assert len(done.trials) == 2
    states = {stack.jobs.get_custom_job(name=trial.custom_job).state.name for trial in done.trials}
    assert states == {"JOB_STATE_CANCELLED"}
    reasons = {trial.infeasible_reason for trial in done.trials}
    assert reasons == {"The trial was cancelled because its tuning job was cancelled."}


def test_trials_that_end_with_the_failed_job_are_cancelled_and_do_not_count_as_failed(stack: Stack) -> None:
    body = "sys.exit(3) if trial == 1 else time.sleep(600)"
    done = ended(stack, study(stack, body, max_failed_trial_count=1).name)
    assert done.state.name == "JOB_STATE_FAILED"
    assert done.error.message.startswith("Too many trials failed (1). The first, trial 1: ")
    reasons = {trial.id: trial.infeasible_reason for trial in done.trials}
    assert "non-zero status of 3" in reasons.pop("1")
    assert set(reasons.values()) <= {"The trial was cancelled because too many other trials failed."}


def test_a_grid_is_tried_once_each_and_ends_before_the_maximum(stack: Stack) -> None:
    spec = {
        "algorithm": "GRID_SEARCH",
        "parameters": [{"parameter_id": "x", "discrete_value_spec": {"values": [1, 2.5, 8]}}],
    }
    done = ended(stack, study(stack, "report(x, 1)", spec=spec, max_trial_count=9).name)
    assert [trial.parameters[0].value for trial in done.trials] == [1, 2.5, 8]
    assert done.state.name == "JOB_STATE_SUCCEEDED"
    jobs = [stack.jobs.get_custom_job(name=trial.custom_job) for trial in done.trials]
    flags = [job.job_spec.worker_pool_specs[0].container_spec.args[-1] for job in jobs]
    assert flags == ["--x=1", "--x=2.5", "--x=8"], "a program may read whole values with type=int"


def test_a_finished_grid_of_failures_below_the_limit_is_a_success_without_a_best_trial(stack: Stack) -> None:
    spec = {
        "algorithm": "GRID_SEARCH",
        "parameters": [{"parameter_id": "x", "discrete_value_spec": {"values": [1, 2]}}],
    }
    done = ended(stack, study(stack, "report(x, 1); sys.exit(3)", spec=spec, max_failed_trial_count=3).name)
    assert done.state.name == "JOB_STATE_SUCCEEDED"
    assert [trial.state.name for trial in done.trials] == ["INFEASIBLE"] * 2
    assert [one.step_count for trial in done.trials for one in trial.measurements] == [1, 1]
    assert not any("final_measurement" in trial for trial in done.trials)


def test_every_metric_of_a_study_has_its_final_value_and_is_followed_to_its_own_goal(stack: Stack) -> None:
    metrics = [{"metric_id": "accuracy", "goal": "MAXIMIZE"}, {"metric_id": "loss", "goal": "MINIMIZE"}]
    spec = {"metrics": metrics, "measurement_selection_type": "BEST_MEASUREMENT"}
    values = [(1, 5), (3, 2), (2, 4)]
    body = "; ".join(
        f"report({accuracy}, {step}); report({loss}, {step}, tag='loss')"
        for step, (accuracy, loss) in enumerate(values)
    )
    done = ended(stack, study(stack, body, spec=spec, max_trial_count=2).name)
    assert done.state.name == "JOB_STATE_SUCCEEDED", done
    for trial in done.trials:
        final = {metric.metric_id: metric.value for metric in trial.final_measurement.metrics}
        assert final == {"accuracy": 3, "loss": 2}
