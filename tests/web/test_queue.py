"""The page of the queue, with what the flows wrote: runs that wait for a limit and for room."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from httpx import Client as Browser

from tests.client.mirrored import mirror, queueing_world
from tests.client.rule_documents import example
from tests.client.served import Served, served_context, served_once
from tests.contract.test_retries import lose, retried
from tests.contract.world import World
from tests.core.shipped import assert_valid
from tests.web.consoles import console_of

DEPLOYMENT: dict[str, Any] = example("deployment.v1.us_central1")


@served_once
def served(served: Served) -> None:
    mirror(queueing_world(), served)
    served.write("ledger", "deployment.json", _capped(jobs=4, runs_per_hour=0))


def _capped(*, jobs: int, runs_per_hour: int) -> dict[str, Any]:  # Any: a JSON document
    admission = {
        "limits": [{"jobs": jobs, "per": "model"}, {"jobs": 1, "label": {"team": "<b>blue</b>"}}],
        "caps": {"runs_per_hour": runs_per_hour, "cost_per_day": 12.5},
    }
    return DEPLOYMENT | {"policy": {**DEPLOYMENT["policy"], "admission": admission}}


def test_the_page_says_in_each_row_what_a_run_waits_for_and_behind_which(browser: Browser) -> None:
    page = browser.get("/queue").text
    rows = [row.partition("</tr>")[0] for row in page.split('<tr id="waits-')[1:]]
    assert [row.partition("-2026")[0] for row in rows] == ["flowers-c", "flowers-b", "cassava-a", "leaves-a"]
    assert "a slot of model.flowers" in rows[0]
    assert "no other run" in rows[0]
    assert 'href="/runs/flowers-c-2026' in rows[1]
    assert "us-central1_nvidia_tesla_t4" in rows[2]
    assert 'href="/runs/cassava-a-2026' in rows[3]
    assert "<code>trainmaster queue</code>" in page


def test_a_limit_shows_its_slots_and_who_holds_them(browser: Browser) -> None:
    row = browser.get("/queue").text.partition('<tr id="limit-model.flowers">')[2].partition("</tr>")[0]
    assert "1 of 4" in row
    assert '<progress max="4" value="1"' in row
    assert 'href="/runs/flowers-a-2026' in row


def test_the_document_is_the_one_that_the_command_prints(browser: Browser, served: Served) -> None:
    found = browser.get("/api/v1/queue").json()
    assert_valid(found, "queue.v1")
    printed = json.loads(served.trainmaster("queue", "-o", "json").out)
    for at_that_time in (found, printed):
        del at_that_time["at"]
    assert found == printed


def test_runs_outside_the_queue_are_named(tmp_path_factory: pytest.TempPathFactory) -> None:
    world = World()
    run_id, lost = world.launch(world.drop()).run_id, retried(world)
    lose(world, lost)
    with served_context(tmp_path_factory.mktemp("submitted")) as served:
        mirror(world, served)
        with console_of(served.clients) as browser:
            page = browser.get("/queue").text
    assert "No run is in the queue." in page
    assert f'<li class="break"><a href="/runs/{run_id}">{run_id}</a> <span class="soft">queued ' in page
    assert f'{lost}</a> <span class="soft">next try now: retry 1 of 2 after infrastructure: ' in page


def test_a_reached_cap_is_named(tmp_path_factory: pytest.TempPathFactory) -> None:
    now = datetime.now(UTC)
    with served_context(tmp_path_factory.mktemp("capped")) as served:
        for day in (now, now + timedelta(days=1)):  # the day may end meanwhile
            served.write("ledger", f"caps/cost_per_day/{day:%Y-%m-%d}.json", {})
        with console_of(served.clients) as browser:
            page = browser.get("/queue").text
    assert f"The cap cost_per_day is reached for {now:%Y-%m-}" in page
    assert "No run is in the queue." in page
    assert "The limits and caps are unknown: " in page
