"""A stockout is recognized by the times, then the code, and by the message only if the code is inconclusive."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from trainmaster.orchestrator.core.completion.outcome import stockout_of
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
def test_some_codes_say_it_whatever_the_words(code: int) -> None:
    assert stockout_of(failed(code, "no")) == "no"


@pytest.mark.parametrize("code", [0, 2, 9, 13])
def test_words_say_it_where_the_code_says_nothing(code: int) -> None:
    assert stockout_of(failed(code, INSUFFICIENT)) == INSUFFICIENT
    assert stockout_of(failed(code, "the image us-docker.pkg.dev/p/r/stockout-forecast failed")) is None


@pytest.mark.parametrize("code", [3, 5, 7])
@pytest.mark.parametrize("message", [INSUFFICIENT, "image stockout-forecast not found"])
def test_a_code_about_the_request_is_no_want_of_capacity(code: int, message: str) -> None:
    assert stockout_of(failed(code, message)) is None


def test_a_job_that_ran_had_its_capacity() -> None:
    assert stockout_of(replace(failed(8, INSUFFICIENT), start_time=START)) is None
