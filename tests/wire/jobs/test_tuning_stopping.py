"""Trials and studies that end before they are done."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from google.cloud import aiplatform_v1

from .conftest import Stack
from .studies import ended, study, until

Spec = aiplatform_v1.StudySpec


def test_a_trial_below_the_median_is_stopped_early_and_keeps_its_result(stack: Stack) -> None:
    body = "report(-1 if trial == 4 else 1, 1)\nif trial == 4: time.sleep(600)"
    spec = {"median_automated_stopping_spec": aiplatform_v1.StudySpec.MedianAutomatedStoppingSpec()}
    done = ended(stack, study(stack, body, spec=spec, parallel_trial_count=1).name)
    assert done.state.name == "JOB_STATE_SUCCEEDED"
    assert done.trials[3].final_measurement.metrics[0].value == -1
    job = stack.jobs.get_custom_job(name=done.trials[3].custom_job)
    assert job.state.name == "JOB_STATE_CANCELLED"


@pytest.mark.parametrize("by_time", [False, True])
def test_a_trial_that_cannot_win_is_stopping_then_done_with_what_it_had(
    start: Callable[..., Any], by_time: bool
) -> None:
    # By its own clock each completed trial takes 400 s, and the hopeless one is at 30 s.
    body = (
        "import signal; signal.signal(15, lambda *_: (wait('end'), sys.exit(0)))\n"
        "if trial < 4:\n"
        "    for step in (1, 2, 3, 4): report(0.9 - 1 / (9 + step), step, later_s=100 * step)\n"
        "else:\n"
        "    for step in (1, 2, 3): report(0.4, step, later_s=10 * step)\n"
        "    time.sleep(600)"
    )
    rule = Spec.DecayCurveAutomatedStoppingSpec(use_elapsed_duration=by_time)
    with start(grace_s=20) as stack:
        name = study(stack, body, spec={"decay_curve_stopping_spec": rule}, parallel_trial_count=1).name
        seen = until(stack, name, lambda job: len(job.trials) == 4 and job.trials[3].state.name == "STOPPING")
        assert "end_time" not in seen.trials[3]
        (stack.buckets / "end").touch()
        done = ended(stack, name)
        assert done.state.name == "JOB_STATE_SUCCEEDED"
        last = done.trials[3]
        assert last.state.name == "SUCCEEDED"
        assert last.final_measurement == last.measurements[-1]
        assert last.final_measurement.step_count == 3
        said = [
            entry["textPayload"]
            for entry in stack.logged(name, "service")
            if entry["labels"].get("ml.googleapis.com/trial_id") == "4"
        ]
        assert said[-1] == "Job cancelled."


def test_a_study_ends_with_success_once_it_has_as_many_trials_as_it_stops_at(stack: Stack) -> None:
    config = Spec.StudyStoppingConfig(max_num_trials=2)
    done = ended(stack, study(stack, "report(x, 1)", spec={"study_stopping_config": config}).name)
    assert done.state.name == "JOB_STATE_SUCCEEDED"
    assert [trial.state.name for trial in done.trials] == ["SUCCEEDED"] * 2


def test_a_study_that_stops_as_soon_as_possible_ends_its_trials_too(stack: Stack) -> None:
    config = Spec.StudyStoppingConfig(max_num_trials_no_progress=1, should_stop_asap=True)
    body = "report(1, 1)\nif trial == 1: (buckets / 'up').touch(); time.sleep(600)\nwait('up')"
    done = ended(stack, study(stack, body, spec={"study_stopping_config": config}, max_trial_count=9).name)
    assert done.state.name == "JOB_STATE_SUCCEEDED"
    assert len(done.trials) < 9
    assert done.trials[0].state.name == "SUCCEEDED"
    job = stack.jobs.get_custom_job(name=done.trials[0].custom_job)
    assert job.state.name == "JOB_STATE_CANCELLED"


def test_a_study_out_of_time_ends_its_last_trials_without_calling_them_failures(stack: Stack) -> None:
    limit = {"max_duration": timedelta(seconds=8)}
    config = Spec.StudyStoppingConfig(maximum_runtime_constraint=limit, should_stop_asap=True)
    body = "time.sleep(600)"
    spec = {"study_stopping_config": config}
    done = ended(stack, study(stack, body, spec=spec, max_trial_count=2, max_failed_trial_count=1).name)
    assert done.state.name == "JOB_STATE_SUCCEEDED"
    assert [trial.state.name for trial in done.trials] == ["INFEASIBLE"] * 2
