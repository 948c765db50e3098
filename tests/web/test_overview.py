"""The Overview and what it loads after its first paint, with what the flows wrote."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from tests.client.mirrored import mirror, queueing_world
from tests.client.rule_documents import example
from tests.client.runs.rows import row, write_row
from tests.client.served import Served, run_record, served_context
from tests.contract.retraining import RuleWorld, rule
from tests.contract.world import World
from tests.web.consoles import console_of
from trainmaster.orchestrator.core.names import marker_object
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.web.pages.overview import Today, lately, overview
from trainmaster.web.rendering import Frame, whole_page
from trainmaster.web.source import ConsoleSource
from trainmaster.web.subject import Ask, ConsolePage

CHAMPION = example("champion.v1.promoted")
HOSTILE = "</td><script>alert('x')</script>"
FRAME = Frame(where="here", writable=False, token="", poll_s=0.0, path="/")


@pytest.fixture(scope="module")
def world() -> World:
    """One run has a job; two wait for its limit, and two others for GPUs."""
    return queueing_world()


@pytest.fixture(scope="module")
def now(world: World) -> datetime:
    return world.clock.now()


@pytest.fixture(scope="module")
def served(world: World, now: datetime, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Beside these runs, one failed today, one yesterday, and an old one still runs."""
    with served_context(tmp_path_factory.mktemp("served")) as served:
        mirror(world, served)
        for name, at in (("today", now - timedelta(minutes=5)), ("yesterday", now - timedelta(days=1))):
            text = f"{name}: {HOSTILE}"
            failed = row(0, state=RunState.FAILED, reason=text, currency="USD", cost=Decimal("1.50"))
            write_row(served, replace(failed, run_id=f"failed-{name}", created_at=at, ended_at=at))
        running = run_record("succeeded", run_id="cassava-20260101t000000-0123456789", state="running")
        del running["model"], running["completion"]
        running["progress"] = {"metrics": {"loss": 1.25, "accuracy": 0.61}}
        served.write("ledger", f"runs/{running['run_id']}.json", running)
        served.write("ledger", marker_object(running["run_id"]), {})
        yield served


@pytest.fixture(scope="module")
def source(served: Served) -> Iterator[ConsoleSource]:
    source = ConsoleSource(lambda: served.clients.context, writable=False)
    yield source
    source.reconnect()


@pytest.fixture(scope="module")
def html(source: ConsoleSource, now: datetime) -> str:
    return rendered(overview(Ask(source=source, now=now)))


def rendered(page: ConsolePage) -> str:
    return whole_page(page, FRAME)


def row_of(html: str, prefix: str) -> str:
    """The row whose id begins so."""
    assert f'<tr id="{prefix}' in html
    return html.partition(f'<tr id="{prefix}')[2].partition("</tr>")[0]


def test_a_waiting_run_says_why_and_behind_which_run(html: str) -> None:
    assert "the limit of the model flowers is reached" in row_of(html, "waiting-flowers-c-2026")
    assert "no other run" in row_of(html, "waiting-flowers-c-2026")
    assert 'href="/runs/flowers-c-2026' in row_of(html, "waiting-flowers-b-2026")
    assert 'href="/runs/cassava-a-2026' in row_of(html, "waiting-leaves-a-2026")


def test_active_runs_are_shown_with_their_progress_however_old_they_are(html: str) -> None:
    assert 'class="state state-submitted"' in row_of(html, "active-flowers-a-2026")
    old = row_of(html, "active-cassava-20260101t000000-0123456789")
    assert "accuracy 0.61, loss 1.25" in old
    assert 'id="active-flowers-b' not in html


def test_what_failed_today_says_why_and_what_failed_earlier_is_left_out(html: str) -> None:
    assert "today: &lt;/td&gt;&lt;script&gt;" in row_of(html, "failed-failed-today")
    assert 'id="failed-failed-yesterday"' not in html
    assert "<script>alert" not in html


def test_each_tile_has_its_number(html: str) -> None:
    assert re.findall(r'class="tile[ "].*?<b>(.*?)</b>', html, re.DOTALL) == [
        "2",
        "4",
        "1",
        "6",
        "1.50 USD",
        "–",
    ]


def test_an_empty_project_says_how_to_start(tmp_path: Path) -> None:
    with served_context(tmp_path) as served, console_of(served.clients) as browser:
        page, later = browser.get("/").text, browser.get("/overview/lately").text
    assert "No runs yet. Start one" in page
    assert "No run is active." in page
    assert ("No rules." in later, "No model has a champion." in later) == (True, True)


def test_the_same_page_is_rendered_the_same_while_nothing_changes(
    source: ConsoleSource, now: datetime, html: str
) -> None:
    """Otherwise each look of the live stream would send it again."""
    later = overview(Ask(source=source, now=now + timedelta(seconds=1)))
    assert rendered(later) == html


def test_rules_that_fire_next_and_champions_come_later(tmp_path: Path) -> None:
    world = RuleWorld()
    world.drop_rule(rule())
    world.drop_rule(rule({"schedule": {"cron": "0 3 * * *"}}), "rules/nightly.json")
    world.drop_rule({**rule({"manual": {}}), "enabled": False}, "rules/paused.json")
    world.arrive(2)
    world.tick()
    now = world.clock.now()
    with served_context(tmp_path) as served:
        mirror(world, served)
        for name in ("leaves", "flowers"):
            served.write("ledger", f"champions/{name}.json", {**CHAMPION, "model_name": name})
        source = ConsoleSource(lambda: served.clients.context, writable=False)
        try:
            html = rendered(lately(Ask(source=source, now=now)))
        finally:
            source.reconnect()
    assert html.index('href="/rules/nightly"') < html.index('href="/rules/cassava"')
    assert "2 of 3 objects" in html
    assert "/rules/paused" not in html
    assert 'href="/models/leaves"' in html


def test_what_ended_runs_cost_is_parted_from_what_the_others_may_cost() -> None:
    ended = row(0, state=RunState.SUCCEEDED, currency="USD", cost=Decimal("0.01"), at_most=Decimal(47))
    runs = replace(row(1, state=RunState.RUNNING, currency="USD", at_most=Decimal(30)), ended_at=None)
    never = row(2, state=RunState.CANCELLED, currency="USD", at_most=Decimal(9))
    assert Today(rows=[ended, ended, never], complete=True).spent == "0.02 USD"
    assert Today(rows=[ended, ended, never], complete=True).may_follow == ""
    assert Today(rows=[ended, runs], complete=True).may_follow == "≤ 30.00 USD"
    assert Today(rows=[ended, runs], complete=False).spent == "over 0.01 USD"
