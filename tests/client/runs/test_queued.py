"""What is said of a job that the training service has not started."""

from datetime import datetime, timedelta

import pytest

from tests.client.runs.rows import START
from trainmaster.client.shown.run_lines import QUEUED_LONG, queued_text
from trainmaster.orchestrator.core.runs.job import Queued


def queued(start_by: datetime | None) -> Queued:
    after = None if start_by is None else "us-central1"
    return Queued(since=START, region="europe-west4", next_candidate=after, start_by=start_by)


HOURS = timedelta(hours=1)


@pytest.mark.parametrize(
    ("start_by", "now", "text"),
    [
        (START + 3 * HOURS, START + timedelta(minutes=130, seconds=9), "2h 10m in europe-west4; next candidate us-central1 at 15:00 UTC"),
        (START + 13 * HOURS, START + HOURS, "1h in europe-west4; next candidate us-central1 at 2026-03-02 01:00 UTC"),
        (START + HOURS, START + 2 * HOURS, "2h in europe-west4; next candidate us-central1 once this job is cancelled"),
        (None, START + HOURS, "1h in europe-west4"),
        (None, START, "just now in europe-west4"),
    ],
)  # fmt: skip
def test_a_queued_job_says_since_when_where_and_what_follows(
    start_by: datetime | None, now: datetime, text: str
) -> None:
    assert queued_text(queued(start_by), now) == f"queued {text}"


def test_lists_say_so_only_of_a_job_that_is_queued_for_long() -> None:
    texts = [queued_text(queued(None), START + timedelta(minutes=since), QUEUED_LONG) for since in (9, 10)]
    assert texts == ["", "queued 10m in europe-west4"]
    assert queued_text(None, START) == ""
