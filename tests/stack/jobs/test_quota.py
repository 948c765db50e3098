"""A region has so much for jobs: more is refused in the service's words, and a stockout ends a job that never ran."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from google.api_core.exceptions import TooManyRequests

from tests.stack.injections.conftest import ask
from trainstack.errors import InvalidArgumentError
from trainstack.jobs.capacity import quota_from

from .conftest import PARENT, Stack, container
from .studies import ended, study

Start = Callable[..., Any]
T4 = {"machine_type": "n1-standard-8", "accelerator_type": "NVIDIA_TESLA_T4", "accelerator_count": 2}
T4_METRIC = "aiplatform.googleapis.com/custom_model_training_nvidia_t4_gpus"
SPOT = {"strategy": "SPOT"}


def gpus(*words: str, replicas: int = 1) -> dict[str, Any]:
    return {**container(*words, replicas=replicas), "machine_spec": T4}


def of_region(**resources: object) -> dict[str, object]:
    return {"quotas": {"us-central1": resources}}


def put(stack: Stack, document: object) -> httpx.Response:
    return httpx.put(f"{stack.url}/emulator/v1/quota", json=document, timeout=60)


def test_more_than_the_quota_is_refused_until_the_jobs_that_hold_it_have_ended(start: Start) -> None:
    with start(quota=quota_from(of_region(NVIDIA_TESLA_T4=4))) as stack:
        (stack.buckets / "b").mkdir()
        first = stack.submit(gpus("wait=b/go", replicas=1), gpus("wait=b/go", replicas=1))
        with pytest.raises(TooManyRequests) as refused:
            stack.submit(gpus("print=x"))
        assert refused.value.message.endswith(f"The following quota metrics exceed quota limits: {T4_METRIC}")
        assert len(list(stack.jobs.list_custom_jobs(parent=PARENT))) == 1
        without = stack.submit(container("print=x"))  # no accelerator, no part of this quota
        (stack.buckets / "b" / "go").touch()
        assert stack.ended(first.name).state.name == "JOB_STATE_SUCCEEDED"
        assert stack.ended(without.name).state.name == "JOB_STATE_SUCCEEDED"
        assert stack.ended(stack.submit(gpus("print=x")).name).state.name == "JOB_STATE_SUCCEEDED"


def test_spot_machines_and_machine_types_and_replicas_have_quotas_of_their_own(start: Start) -> None:
    document = of_region(**{"NVIDIA_TESLA_T4": 0, "n1-*": 2, "replicas": 3, "spot": {"NVIDIA_TESLA_T4": 2}})
    with start(quota=quota_from(document)) as stack:
        spot = stack.submit(gpus("print=x"), scheduling=SPOT)
        assert stack.ended(spot.name).state.name == "JOB_STATE_SUCCEEDED"
        with pytest.raises(TooManyRequests, match=f"{T4_METRIC}$"):
            stack.submit(gpus("print=x"))
        with pytest.raises(TooManyRequests, match=r"custom_model_training_preemptible_nvidia_t4_gpus$"):
            stack.submit(gpus("print=x", replicas=1), gpus("print=x", replicas=1), scheduling=SPOT)
        with pytest.raises(TooManyRequests, match=r"custom_model_training_cpus$"):
            stack.submit(container("print=x"), container("print=x", replicas=2))
        elsewhere = container("print=x", replicas=2) | {"machine_spec": {"machine_type": "e2-standard-4"}}
        pools = (container("print=x"), elsewhere)
        assert stack.ended(stack.submit(*pools).name).state.name == "JOB_STATE_SUCCEEDED"


def test_a_study_needs_quota_for_the_trials_that_run_together(start: Start) -> None:
    with start(quota=quota_from(of_region(replicas=1))) as stack:
        with pytest.raises(TooManyRequests, match="exceed quota limits"):
            study(stack, "report(x, 1)", parallel_trial_count=2)
        done = study(stack, "report(x, 1)", parallel_trial_count=1, max_trial_count=1)
        assert ended(stack, done.name).state.name == "JOB_STATE_SUCCEEDED"


def test_a_stockout_ends_the_job_before_it_ran_and_strikes_as_often_as_it_says(start: Start) -> None:
    with start() as stack:
        match = "us-*/NVIDIA_TESLA_T4/standard"
        ask(stack.url, {"name": "s", "at": "vertex.jobs", "kind": "stockout", "match": match, "times": 1})
        other = stack.submit(container("print=x"))
        spot = stack.submit(gpus("print=x"), scheduling=SPOT)
        struck = stack.ended(stack.submit(gpus("print=x")).name)
        assert (struck.state.name, struck.error.code) == ("JOB_STATE_FAILED", 8)
        assert struck.error.message.startswith("Resources are insufficient in region: us-central1.")
        assert not struck.start_time
        assert stack.texts(struck.name, "workerpool0-0") == []
        again = stack.submit(gpus("print=x"))
        for job in (other, spot, again):
            assert stack.ended(job.name).state.name == "JOB_STATE_SUCCEEDED"


def test_quota_is_raised_while_the_service_runs(stack: Stack) -> None:
    assert put(stack, of_region(replicas=0)).status_code == 200
    with pytest.raises(TooManyRequests):
        stack.submit(container("print=x"))
    assert put(stack, {}).status_code == 200
    assert stack.ended(stack.submit(container("print=x")).name).state.name == "JOB_STATE_SUCCEEDED"
    refused = put(stack, {"quotas": {"us-central1": {"NVIDIA_T4": 1}}})
    assert refused.status_code == 400
    assert (
        "$.quotas.us-central1.NVIDIA_T4: Vertex AI has no accelerator" in refused.json()["error"]["message"]
    )


def test_every_fault_of_a_document_is_reported_with_its_path() -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        quota_from({"quotas": {"r": {"replicas": -1, "spot": {"n1-*": "many"}}}, "limits": {}})
    paths = {line.partition(": ")[0] for line in str(refused.value).splitlines()}
    assert paths == {"$.limits", "$.quotas.r.replicas", "$.quotas.r.spot.n1-*"}


def test_a_glob_that_is_longer_than_any_resource_is_refused() -> None:
    """Python takes above 20 s to read one of 30,000 brackets."""
    with pytest.raises(InvalidArgumentError, match="at most 200 characters"):
        quota_from({"quotas": {"r": {"[" * 30_000: 1}}})
