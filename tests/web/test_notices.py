"""What was sent to receivers: the command, the document and the page say the same, whatever runs are called."""

import json
from collections.abc import Iterator
from datetime import timedelta

import pytest
from httpx import Client as Browser

from tests.client.runs.rows import START
from tests.client.served import Served, served_context
from tests.core.shipped import assert_valid
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.notices.deliveries import (
    Delivery,
    DeliveryState,
    NoticeDeliveries,
    deliveries_object,
)

FAILED = Delivery(state=DeliveryState.RETRYING, at=START, attempts=3, reason="HTTP 500")
SENT = Delivery(state=DeliveryState.DELIVERED, at=START)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served_context(tmp_path_factory.mktemp("served"), publishes=True) as served:
        for number in range(3):
            found = NoticeDeliveries(
                id=f"run-{number}/failed",
                type="trainmaster.run.failed.v1",
                subject=f"run-{number}",
                time=START + timedelta(minutes=number),
                message=f"m: run-{number} failed: <script>\x1b[31m",
                receivers={"ops": FAILED, "chat": SENT},
            )
            document = encoded(found)
            assert isinstance(document, dict)
            served.write("ledger", deliveries_object(found.id, found.time), document)
        served.write("ledger", "notices/9-damaged.json", {"schema": "another"})
        yield served


def test_the_newest_notices_are_listed_first_with_what_became_of_each(served: Served) -> None:
    done = served.trainmaster("notices", "ls", "--limit", "2", "--verbose")
    lines = done.out.splitlines()
    assert lines[0].endswith("chat delivered; ops retrying: HTTP 500, after 3 attempts")
    assert [line.split()[1] for line in lines[1::2]] == ["run-2", "run-1"]
    assert "\x1b" not in done.out
    assert "Storage operations: 3." in done.err
    document = json.loads(served.trainmaster("notices", "ls", "-o", "json").out)
    assert_valid(document, "notice_list.v1")
    for each in document["notices"]:
        assert_valid(each, "notice_deliveries.v1")
    assert len(document["notices"]) == 3


def test_the_page_shows_the_same_and_runs_nothing_of_it(served: Served, browser: Browser) -> None:
    page = browser.get("/notices").text
    assert "<script>\x1b" not in page
    assert "m: run-2 failed: &lt;script&gt;" in page
    assert "retrying: HTTP 500, after 3 attempts" in page
    assert "receiver.localhost" in page
    assert len(browser.get("/api/v1/notices").json()["notices"]) == 3


def test_a_test_of_a_receiver_that_the_policy_does_not_have_is_refused(served: Served) -> None:
    done = served.trainmaster("notices", "test", "ops")
    assert done.status == 2
    assert "has no receiver 'ops'; it has: none." in done.err
