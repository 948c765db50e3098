"""Costs of an open page in the cloud: storage operations for an hour of looks, against clients that count them."""

import html
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import httpx
import pytest

from tests.client.logged import Logged
from tests.client.runs.rows import START, row, write_row
from tests.client.served import ROOT, no_jobs, served_context
from tests.web.consoles import browser_on
from tests.web.routes import filled, page_paths
from trainmaster.client.context import Context
from trainmaster.client.runs import listing
from trainmaster.web.console import CLOUD_POLL_S
from trainmaster.web.source import ConsoleSource
from trainstack import logging

HOUR_S = 3600
BOUNDS = {
    "/": 2500,
    "/overview/lately": 50,
    "/runs": 400,
    "/runs/compare": 800,
    "/runs/{run_id}": 800,
    "/drops/{run_id:path}": 800,
    "/runs/{run_id}/study": 800,
    "/models": 150,
    "/models/{name:path}": 800,
    "/rules": 150,
    "/rules/{rule_id}": 800,
    "/queue": 1500,
    "/costs": 120,
    "/try": 0,
    "/dead-letters": 0,
}
"""Storage operations in an hour, for each page that a browser looks at again and again: docs/reference/console.md."""
WITHOUT = {
    "/runs/compare/curves": "reads logs, once for each page that is opened",
    "/try/check": "answers a form",
    "/notices": "reads the ledger, once for each page that is opened",
    "/dead-letters/list": "reads Pub/Sub, once for each click",
    "/overview/dead-letters": "reads Pub/Sub, once for each page that is opened",
}
RUN_IDS = "trains-20260304t120000-0123456789", "trains-20260304t130000-0123456789"
RUN_ID = RUN_IDS[0]
QUERY = {"/runs/compare": "?" + "&".join(f"run={run_id}" for run_id in RUN_IDS)}


@dataclass
class Open:
    """A console in the cloud, whose time only `look` advances."""

    source: ConsoleSource
    browser: httpx.Client
    now: list[float]

    def look(self, path: str, times: int) -> int:
        """Look every CLOUD_POLL_S seconds; returns the operations."""
        before = self.source.storage_calls
        for _ in range(times):
            self.now[0] += CLOUD_POLL_S
            answer = self.browser.get(path)
            assert answer.status_code in {200, 404}, answer.text
        return self.source.storage_calls - before


@pytest.fixture(scope="module")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Context]:
    """A context that is not a local stack's, on local services."""
    folder = tmp_path_factory.mktemp("cloud")
    with (
        served_context(folder) as served,
        logging.serve(folder / "logging") as url,
        no_jobs() as vertex_url,
    ):
        log = Logged(served, url)
        for run_id in RUN_IDS:
            log.record(run_id, job_id="1")
        log.write("1", 1, "workerpool0-0", textPayload="a line")
        step = {
            "event": "train_progress",
            "epoch": 1,
            "epochs": 1,
            "step": 1,
            "steps_per_epoch": 1,
            "loss": 0.5,
        }
        log.write("1", 2, "workerpool0-0", jsonPayload=step)
        for number in range(30):
            write_row(served, row(number, ended_at=START))
        yield replace(served.clients.context, state=None, logging_host=url, vertex_host=vertex_url)


@contextmanager
def opened(context: Context) -> Iterator[Open]:
    now = [0.0]
    source = ConsoleSource(lambda: context, writable=False, clock=lambda: now[0])
    with browser_on(source) as browser:
        yield Open(source=source, browser=browser, now=now)


def test_every_page_has_a_bound_and_the_reference_states_it() -> None:
    assert set(page_paths()) == BOUNDS.keys() | WITHOUT.keys()
    page = (ROOT / "docs/reference/console.md").read_text()
    for most in set(BOUNDS.values()):
        assert f"| {most:,} |" in page


@pytest.mark.slow
@pytest.mark.parametrize("path", BOUNDS)
def test_an_hour_of_looks_costs_a_bounded_number_of_operations(cloud: Context, path: str) -> None:
    # A part of an hour. Looks at a run take longer here.
    looks = 12 if "{run_id" in path else 30
    with opened(cloud) as console:
        cost = (
            console.look(filled(path, RUN_ID) + QUERY.get(path, ""), looks) * HOUR_S / (looks * CLOUD_POLL_S)
        )
    assert cost <= BOUNDS[path]
    assert cost > BOUNDS[path] / 4 or BOUNDS[path] - cost < 110  # a bound says something


def test_the_curves_of_compared_runs_are_one_page(cloud: Context) -> None:
    with opened(cloud) as console:
        page = console.browser.get("/runs/compare" + QUERY["/runs/compare"]).text
        (address,) = re.findall(r'hx-get="(/runs/compare/curves[^"]*)"', page)
        curves = console.browser.get(html.unescape(address)).text
    (data,) = re.findall(r'id="curve-0-data">(.*?)</script>', curves)
    assert [each["points"] for each in json.loads(data)["series"]] == [[[1, 0.5]], [[1, 0.5]]]


def test_two_tabs_cost_as_much_as_one(cloud: Context) -> None:
    with opened(cloud) as console:
        one = console.look("/runs", 1)
        assert one > 0
        console.now[0] += CLOUD_POLL_S
        before = console.source.storage_calls
        for _ in range(5):
            assert console.browser.get("/runs").status_code == 200
        assert console.source.storage_calls - before == one


def test_filters_and_orders_of_the_runs_share_an_index_that_is_kept_for_a_while(
    cloud: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "PAGE_SIZE", 10)
    with opened(cloud) as console:
        paths = ("/runs?state=failed", "/runs?text=run-2", "/runs?sort=-recorded")
        assert [console.look(path, 1) for path in paths] == [3, 0, 0]
        console.now[0] += HOUR_S / 4
        assert [console.look(path, 1) for path in paths] == [1, 0, 0]


def test_without_looks_nothing_is_read_and_no_stream_is_given(cloud: Context) -> None:
    with opened(cloud) as console:
        watched = console.browser.get("/runs", headers={"accept": "text/event-stream"})
        assert watched.headers["content-type"].startswith("text/html")
        assert 'data-poll-s="10.0"' in console.browser.get("/runs").text
        before = console.source.storage_calls
        console.now[0] += HOUR_S
        assert console.source.storage_calls == before
