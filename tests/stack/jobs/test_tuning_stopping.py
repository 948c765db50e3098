"""Trials that end before they are done."""

from collections.abc import Callable
from typing import Any

import pytest
from google.cloud.aiplatform_v1.types import StudySpec

from .studies import ended, study


@pytest.mark.parametrize(("by_time", "steps", "seconds"), [(False, 10, 1), (True, 1, 100)])
def test_a_trial_below_the_median_is_stopping_then_done_with_what_it_had(
    start: Callable[..., Any], by_time: bool, steps: int, seconds: int
) -> None:
    # The hopeless trial has come as far as the completed ones by its steps alone, or by its own clock alone.
    body = (
        "import signal; signal.signal(15, lambda *_: (wait('end'), sys.exit(0)))\n"
        "if trial < 4:\n"
        "    for step in (1, 2, 3, 4): report(0.9 - 1 / (9 + step), 10 * step, later_s=100 * step)\n"
        "else:\n"
        f"    for step in (1, 2, 3): report(0.4, {steps} * step, later_s={seconds} * step)\n"
        "    time.sleep(600)"
    )
    rule = StudySpec.MedianAutomatedStoppingSpec(use_elapsed_duration=by_time)
    with start(grace_s=20) as stack:
        name = study(stack, body, spec={"median_automated_stopping_spec": rule}, parallel_trial_count=1).name
        seen = stack.until(name, lambda job: len(job.trials) == 4 and job.trials[3].state.name == "STOPPING")
        assert "end_time" not in seen.trials[3]
        (stack.buckets / "end").touch()
        done = ended(stack, name)
        assert done.state.name == "JOB_STATE_SUCCEEDED"
        last = done.trials[3]
        assert last.state.name == "SUCCEEDED"
        assert last.final_measurement == last.measurements[-1]
        assert last.final_measurement.step_count == 3 * steps
        job = stack.jobs.get_custom_job(name=last.custom_job)
        assert job.state.name == "JOB_STATE_CANCELLED"
        said = [
            entry["textPayload"]
            for entry in stack.logged(name, "service")
            if entry["labels"].get("ml.googleapis.com/trial_id") == "4"
        ]
        assert said[-1] == "Job cancelled."
