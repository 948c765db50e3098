"""The list of runs: what is shown of each, filters, pages, and the same list as JSON."""

import json
import re
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from httpx import Client as Browser

from tests.client.logged import NOW, logged_context, progress
from tests.client.runs.rows import START, row, write_row, write_rows
from tests.client.served import Served, served_context
from tests.core.shipped import assert_valid
from tests.fixtures import fixture_of
from tests.web.consoles import console_of, console_over
from trainmaster.orchestrator.core.job_names import JobKind
from trainmaster.orchestrator.core.runs.job import Queued
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.web.pages import runs as page_of_runs

HOSTILE = """</td><script>alert('x')</script>" onload="y" \u202ereversed"""
ROWS = [
    row(
        5, state=RunState.WAITING, reason="the limit of 2 jobs for each model is reached", model_name="leaves"
    ),
    row(4, state=RunState.RUNNING, currency="USD", at_most=Decimal("6.7288"), metrics={"loss": 0.5}),
    row(3, state=RunState.FAILED, reason=HOSTILE, labels={"team": "vision"}),
    row(2, state=RunState.REJECTED, model_name=None, reason="$.priority: expected an integer"),
    row(
        1,
        model_name=HOSTILE,
        metrics={"loss": 0.25, HOSTILE: 1.0},
        ended_at=START + timedelta(minutes=77),
        currency="USD",
        cost=Decimal("0.21"),
        group="sweep-1",
    ),
    row(
        0,
        labels={"team": "vision", "owner": "ann"},
        source="rule",
        sent_by="ann",
        commit="04889a2c",
        dirty=True,
        group="sweep-1",
    ),
]


served = fixture_of(served_context, lambda served: write_rows(served, ROWS))


def rows_of(page: str) -> list[str]:
    """The rows of the table, as HTML."""
    return [each.partition("</tr>")[0] for each in page.split('<tr id="run-')[1:]]


def numbers(page: str) -> list[int]:
    return [int(each.partition('"')[0]) for each in page.split('<tr id="run-run-')[1:]]


def test_each_row_says_why_its_run_waits_or_failed_and_what_it_costs(browser: Browser) -> None:
    waiting, running, _, rejected, ended, _ = rows_of(browser.get("/runs").text)
    assert "the limit of 2 jobs for each model is reached" in waiting
    assert "≤ 6.73 USD" in running
    assert "$.priority: expected an integer" in rejected
    assert ("0.21 USD" in ended, "1h 16m" in ended) == (True, True)
    assert 'href="/runs/run-1"' in ended


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", [5, 4, 3, 2, 1, 0]),
        ("state=failed&state=rejected", [3, 2]),
        ("label=team%3Dvision", [3, 0]),
        ("label=team%3Dvision&label=owner%3Dann", [0]),
        ("text=run-4", [4]),
        ("by=ANN&commit=0488", [0]),
        ("group=sweep-1", [1, 0]),
        ("sort=-loss", [4, 1, 5, 3, 2, 0]),
        ("sort=-loss&state=running", [4]),
        ("sort=state&limit=2", [3, 2]),
        ("since=2026-03-01T12:04Z", [5, 4]),
        ("before=2026-03-01T12:02Z", [1, 0]),
        ("text=&model=&label=&since=&state=running", [4]),
        ("text=nothing-like-that", []),
    ],
)
def test_filters_choose_runs_on_the_page_and_in_the_document(
    browser: Browser, query: str, found: list[int]
) -> None:
    assert numbers(browser.get(f"/runs?{query}").text) == found
    document = browser.get(f"/api/v1/runs?{query}").json()
    assert [each["run_id"] for each in document["runs"]] == [f"run-{number}" for number in found]


def test_the_document_is_the_one_that_the_command_prints(browser: Browser, served: Served) -> None:
    found = browser.get("/api/v1/runs?state=failed&text=script").json()
    assert_valid(found, "run_list.v1")
    printed = served.trainmaster("ls", "--state", "failed", "--text", "script", "-o", "json").out
    assert found == json.loads(printed)


def test_lists_have_the_percentage_of_what_trains_and_the_last_metrics_of_what_was_cancelled(
    tmp_path: Path,
) -> None:
    """A tuning has neither: its trials have. Metrics on record count more."""
    with logged_context(tmp_path) as logged:
        served = logged.served
        kinds = {6: JobKind.CUSTOM, 7: JobKind.CUSTOM, 8: JobKind.TUNING}
        for number, kind in kinds.items():
            job: dict[str, Any] = {"job_kind": kind, "job_id": str(number)}
            write_row(
                served,
                replace(row(number, state=RunState.RUNNING, **job), created_at=NOW - timedelta(hours=1)),
            )
            logged.write(str(number), number, "workerpool0-0", **progress(number))
        write_row(served, row(9, job_kind=JobKind.CUSTOM, job_id="9"))
        for number, metrics in ((10, {}), (11, {"loss": 0.5})):
            cancelled = row(
                number, state=RunState.CANCELLED, job_kind=JobKind.CUSTOM, job_id=str(number), metrics=metrics
            )
            write_row(served, replace(cancelled, created_at=NOW - timedelta(hours=1)))
            logged.write(str(number), number, "workerpool0-0", **progress(number))
        with console_over(lambda: replace(served.clients.context, logging_host=logged.url)) as browser:
            document = browser.get("/api/v1/runs").json()
            page = rows_of(browser.get("/runs?sort=model").text)
        table = served.trainmaster("ls").out
        printed = json.loads(served.trainmaster("ls", "-o", "json").out)
    assert_valid(document, "run_list.v1")
    assert document == printed
    assert {each["run_id"]: each.get("progress_percentage") for each in document["runs"]} == {
        "run-6": 15, "run-7": 17, "run-8": None, "run-9": None, "run-10": None, "run-11": None,
    }  # fmt: skip
    shown = {each["run_id"]: each.get("metrics") for each in document["runs"]}
    assert (shown["run-10"], shown["run-11"]) == ({"loss": 1.5}, {"loss": 0.5})
    assert ["17 %" in each for each in page].count(True) == 1
    assert ("running, 15 %" in table, "running, 17 %" in table) == (True, True)


def test_every_wrong_filter_is_named(browser: Browser) -> None:
    query = "/runs?state=lost&state=failed&label=team&since=soon&before=2026-13-01"
    page, document = browser.get(query), browser.get(f"/api/v1{query}")
    assert (page.status_code, document.status_code) == (400, 400)
    assert (rows_of(page.text), 'id="filter-failed" name="state" value="failed" checked' in page.text) == (
        [],
        True,
    )
    for said in ("state: expected one of reserved, ", "label: expected KEY=VALUE", "since: expected a dur", "before: exp"):  # fmt: skip
        assert said in page.text
        assert said in document.json()["error"]["message"]
    limited = browser.get("/runs?limit=1001")
    assert (limited.status_code, "limit: expected a whole number from 1 to 1000" in limited.text) == (
        400,
        True,
    )


def test_an_unknown_parameter_is_refused_with_the_known_ones(browser: Browser) -> None:
    page, document = browser.get("/runs?stat=failed"), browser.get("/api/v1/runs?stat=failed&modle=m")
    assert (page.status_code, rows_of(page.text), document.status_code) == (400, [], 400)
    assert "Unknown parameter &#39;stat&#39;. Allowed: state, model, " in page.text
    assert document.json()["error"]["message"].startswith("Unknown parameters 'modle', 'stat'. ")
    none = browser.get("/api/v1/champions?limit=3")
    assert none.json()["error"]["message"] == "Unknown parameter 'limit'. No parameters are allowed here."
    assert browser.get("/runs?key=of-an-earlier-session").status_code == 200


def test_pages_continue_each_other_and_lead_back_to_the_newest(browser: Browser) -> None:
    seen, address = [], "/runs?limit=2&text=run"
    while address:
        page = browser.get(address).text
        seen.append(numbers(page))
        if len(seen) > 1:
            assert 'href="/runs?limit=2&amp;text=run">Newest runs' in page
        older = re.search(r'rel="next" href="([^"]+)"', page)
        address = older[1].replace("&amp;", "&") if older else ""
    assert seen == [[5, 4], [3, 2], [1, 0]]


def test_a_search_of_the_page_is_bounded_and_can_be_continued(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_of_runs, "SEARCHED_MAX", 4)
    with console_over(lambda: served.clients.context) as browser:
        page = browser.get("/runs?text=rule").text
        assert "No run matches yet" in page
        assert "The newest 3 of this period were searched" in page
        older = re.search(r'rel="next" href="([^"]+)"', page)
        assert older
        assert numbers(browser.get(older[1].replace("&amp;", "&")).text) == [0]


def test_a_sorted_page_begins_with_the_newest_runs_and_gets_the_others(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_of_runs, "SEARCHED_MAX", 4)
    with console_over(lambda: served.clients.context) as browser:
        page = browser.get("/runs?sort=-recorded").text
        assert ("of the newest 4 runs." in page, numbers(page)) == (True, [5, 4, 3, 2])
        document = browser.get("/api/v1/runs?sort=-recorded").json()
        assert [len(document["runs"]), document["bound_reached"]] == [6, False]
        assert numbers(browser.get("/runs?sort=-recorded").text) == [5, 4, 3, 2, 1, 0]


def test_the_page_names_its_command_quoted_for_a_shell(browser: Browser) -> None:
    page = browser.get("/runs?text=it's&state=failed&label=a%3Db").text
    assert (
        "trainmaster ls --state failed --label a=b --text &#39;it&#39;&#34;&#39;&#34;&#39;s&#39; --limit 50"
        in page
    )


def test_a_metric_that_differs_is_a_column_with_its_best_value_and_sorts_the_list(browser: Browser) -> None:
    page = browser.get("/runs?sort=loss").text
    assert 'href="/runs?sort=-loss"' in page
    assert "Sorted by loss, the smallest first: of 6 runs." in page
    assert ["best" in each for each in rows_of(page)[:2]] == [True, False]
    assert "trainmaster ls --sort loss --limit 50" in page
    assert "ann <span" in page
    assert browser.get("/runs?sort=-").status_code == 400


def test_a_job_that_is_queued_for_long_says_so_under_why(tmp_path: Path) -> None:
    queued = Queued(since=START, region="europe-west4", next_candidate="us-central1", start_by=START)
    with served_context(tmp_path) as served:
        write_row(served, row(0, state=RunState.SUBMITTED, queued=queued))
        with console_of(served.clients) as browser:
            page = browser.get("/runs").text
    assert re.search(r"<summary>queued [\w ]+ in europe-west4; next candidate us-central1 once", page)
