"""A stockout is recognized by the times, then the code, and by the message only if the code is inconclusive."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from trainmaster.orchestrator.core.completion.outcome import stockout_of
from trainmaster.orchestrator.core.requests.spec import Scheduling
from trainmaster.orchestrator.core.runs.job import Failure, Job, JobState

START = datetime(2026, 3, 1, 12, tzinfo=UTC)

INSUFFICIENT = "Resources are insufficient in region: us-central1. Please try a different region."


def failed(code: int, message: str) -> Job:
    return Job(
        name="projects/p/locations/us-central1/customJobs/1",
        state=JobState.FAILED,
        error=Failure(code=code, message=message),
    )


@pytest.mark.parametrize("code", [8, 14])
def test_some_codes_mean_a_stockout_whatever_the_message(code: int) -> None:
    assert stockout_of(failed(code, "no")) == "no"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        *((code, INSUFFICIENT) for code in (0, 2, 9, 13)),
        (13, "ZONE_RESOURCE_POOL_EXHAUSTED: try a different zone"),
        (9, "The following quota metrics exceed quota limits: nvidia_t4_gpus"),
    ],
)
def test_where_the_code_is_inconclusive_the_message_names_a_stockout(code: int, message: str) -> None:
    assert stockout_of(failed(code, message)) == message
    assert stockout_of(failed(code, "the image us-docker.pkg.dev/p/r/stockout-forecast failed")) is None


@pytest.mark.parametrize("code", [3, 5, 7])
@pytest.mark.parametrize("message", [INSUFFICIENT, "image stockout-forecast not found"])
def test_a_code_about_the_request_is_not_a_stockout(code: int, message: str) -> None:
    assert stockout_of(failed(code, message)) is None


def test_a_job_that_ran_had_its_capacity() -> None:
    assert stockout_of(replace(failed(8, INSUFFICIENT), start_time=START)) is None


FLEXIBLE = Scheduling(flex_start=True, max_wait_s=3600)


def ended_after(seconds: float, state: JobState = JobState.FAILED, error: Failure | None = None) -> Job:
    """A job that never started and ended that long after its creation."""
    end = START + timedelta(seconds=seconds)
    return replace(failed(0, ""), state=state, error=error, create_time=START, end_time=end)


@pytest.mark.parametrize("state", [JobState.FAILED, JobState.CANCELLED, JobState.EXPIRED])
@pytest.mark.parametrize("error", [None, *(Failure(code=code, message="late") for code in (1, 4, 10, 13))])
def test_a_flexible_start_that_waited_in_vain_is_a_stockout(state: JobState, error: Failure | None) -> None:
    job = ended_after(3600, state, error)
    assert stockout_of(job, FLEXIBLE) == (
        error.message if error else "it did not start within its max_wait_s"
    )
    assert stockout_of(job, replace(FLEXIBLE, flex_start=False)) is None
    assert stockout_of(replace(job, start_time=START), FLEXIBLE) is None
    assert stockout_of(ended_after(3599, state, error), FLEXIBLE) is None


@pytest.mark.parametrize("code", [3, 5, 7])
def test_a_flexible_start_that_ended_for_its_requests_fault_did_not_lack_capacity(code: int) -> None:
    assert stockout_of(ended_after(4000, error=Failure(code=code, message="no image")), FLEXIBLE) is None


@pytest.mark.parametrize(("max_wait_s", "after_s"), [(None, 24 * 3600), (0, None)])
def test_a_flexible_start_waits_a_day_by_default(max_wait_s: int | None, after_s: int | None) -> None:
    scheduling = Scheduling(flex_start=True, max_wait_s=max_wait_s)
    assert stockout_of(ended_after(24 * 3600 - 1), scheduling) is None
    assert (stockout_of(ended_after(30 * 24 * 3600), scheduling) is not None) is (after_s is not None)
    assert (stockout_of(ended_after(24 * 3600), scheduling) is not None) is (after_s is not None)


def test_a_flexible_start_that_succeeded_without_a_start_time_is_no_stockout() -> None:
    assert stockout_of(ended_after(4000, JobState.SUCCEEDED), FLEXIBLE) is None
