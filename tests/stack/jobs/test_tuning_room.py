"""Trials of several replicas, and studies beside each other on one machine."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from google.api_core.exceptions import TooManyRequests

from tests.stack.waiting import wait_until

from .conftest import Stack, container
from .studies import ended, study

pytestmark = pytest.mark.slow


def test_every_trial_of_several_replicas_is_a_cluster_of_its_own(stack: Stack) -> None:
    body = (
        "chief = replica['type'] == 'workerpool0'\n"
        "report(x if chief else 99, 1)\n"
        "if chief: wait('go')\n"
        "else: (buckets / f'up-{trial}-{replica[\"index\"]}').touch(); time.sleep(600)"
    )
    job = study(stack, body, workers=2, max_trial_count=2)
    stack.until(job.name, lambda job: [trial.state.name for trial in job.trials] == ["ACTIVE"] * 2)
    wait_until(lambda: len(list(stack.buckets.glob("up-*"))) == 4)
    (stack.buckets / "go").touch()
    done = ended(stack, job.name)
    assert done.state.name == "JOB_STATE_SUCCEEDED", done
    for trial in done.trials:
        assert [metric.value for one in trial.measurements for metric in one.metrics] == [
            trial.parameters[0].value
        ]

    told = [entry for entry in stack.logged(job.name) if "environ" in entry.get("jsonPayload", {})]
    assert len(told) == 6
    addresses: dict[str, set[str]] = {}
    for entry in told:
        environ = entry["jsonPayload"]["environ"]
        trial_id = entry["labels"]["ml.googleapis.com/trial_id"]
        members = json.loads(environ["TF_CONFIG"])["cluster"]
        assert (len(members["chief"]), len(members["worker"])) == (1, 2)
        addresses.setdefault(trial_id, set()).update(members["chief"] + members["worker"])
        flags = entry["jsonPayload"]["argv"]
        assert flags == [f"--x={done.trials[int(trial_id) - 1].parameters[0].value}"]
    assert len(addresses["1"]) == len(addresses["2"]) == 3
    assert not addresses["1"] & addresses["2"]


def test_a_study_larger_than_the_machine_keeps_one_place_in_the_line(start: Callable[..., Any]) -> None:
    with start(capacity=2) as stack:
        job = study(stack, "report(x, 1); wait('go')", max_trial_count=6, parallel_trial_count=6)
        states = ["ACTIVE", "ACTIVE", "REQUESTED"]
        stack.until(job.name, lambda job: [trial.state.name for trial in job.trials] == states)
        small = stack.submit(container("print=x"))
        assert small.state.name == "JOB_STATE_QUEUED"
        waiting = stack.jobs.get_hyperparameter_tuning_job(name=job.name).trials
        assert [trial.state.name for trial in waiting] == states
        (stack.buckets / "go").touch()
        done, between = ended(stack, job.name), stack.ended(small.name)
        assert [trial.state.name for trial in done.trials] == ["SUCCEEDED"] * 6
        assert between.start_time <= done.trials[3].start_time


def test_a_trial_that_this_machine_could_never_run_is_refused(start: Callable[..., Any]) -> None:
    with start(capacity=2) as stack:
        with pytest.raises(TooManyRequests) as refused:
            study(stack, "", workers=2)
        assert "but the job has 3" in str(refused.value)
