"""The page that shows several runs side by side."""

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from httpx import Client as Browser

from tests.client.mirrored import mirror
from tests.client.served import Served, run_record, served_context, served_once
from tests.contract.retraining import SMALL
from tests.contract.world import World
from tests.web.consoles import console_of

HOSTILE = "<script>alert('x')</script>"
IDS = [f"cassava-2026030{day}t120000-eb46bb303f" for day in range(1, 4)]


def record(run_id: str, **request: Any) -> dict[str, Any]:  # Any: a JSON document
    document = run_record("succeeded", run_id=run_id)
    document["request"]["document"] |= request
    return document


@served_once
def served(served: Served) -> None:
    changes: tuple[dict[str, Any], ...] = (
        {"args": ["--lr=0.1"]},
        {"args": ["--lr=0.01"]},
        {"labels": {"team": "vision"}},
    )
    for run_id, change in zip(IDS, changes, strict=True):
        served.write("ledger", f"runs/{run_id}.json", record(run_id, **change))


def address(*ids: str, more: str = "") -> str:
    return f"/runs/compare?{'&'.join(f'run={each}' for each in ids)}{more}"


def test_values_that_differ_are_marked_and_can_be_shown_alone(browser: Browser) -> None:
    page = browser.get(address(*IDS[:2])).text
    row = page.partition(">args --lr")[2].partition("</tr>")[0]
    assert ("differs" in row, "0.1<" in row, "0.01<" in row) == (True, True, True)
    assert ">model_name<" in page
    alone = browser.get(address(*IDS[:2], more="&only=differing")).text
    assert ("args --lr" in alone, ">model_name<" in alone) == (True, False)
    assert "trainmaster status &#34;$run&#34; -o yaml" in page


@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        (address(), 400, "Mark 2 to 8 runs to compare; found 0"),
        (address(IDS[0], IDS[0]), 400, "found 1"),
        (address(*(f"{IDS[0][:-1]}{digit}" for digit in range(9))), 400, "found 9"),
        (
            address(IDS[0], "../../secret", HOSTILE),
            400,
            "expected the ids of runs, found &#39;../../secret&#39;",
        ),
        (address(IDS[0], "cassava-20260309t120000-eb46bb303f"), 404, "does not exist"),
    ],
)
def test_runs_that_cannot_be_compared_are_refused(
    browser: Browser, query: str, status: int, said: str
) -> None:
    answer = browser.get(query)
    assert answer.status_code == status
    assert said in answer.text
    assert HOSTILE not in answer.text


def test_with_too_few_marks_the_list_stays_and_says_so(browser: Browser) -> None:
    page = browser.get(address(IDS[0])).text
    assert "<title>Runs" in page
    assert "Mark 2 to 8 runs to compare; found 1." in page
    assert 'id="count"' in page
    assert browser.get(f"/api/v1{address(IDS[0])}").status_code == 400


def test_a_group_of_few_runs_has_a_button_that_compares_it(tmp_path: Path) -> None:
    world = World()
    groups = {}
    for runs in (1, 2, 9):
        request = {**SMALL, "matrix": {"rate": [number / 10 for number in range(runs)]}}
        groups[runs] = world.drop_and_launch(json.dumps(request).encode(), f"requests/m{runs}.json").run_id
    with served_context(tmp_path) as served:
        mirror(world, served)
        with console_of(served.clients) as browser:
            pages = {
                runs: browser.get("/runs", params={"group": group}).text for runs, group in groups.items()
            }
            assert [runs for runs, page in pages.items() if "Compare the group" in page] == [2]
            assert "Compare the group" not in browser.get("/runs").text
            (link,) = re.findall(r'href="([^"]*)">Compare the group<', pages[2])
            page = browser.get(html.unescape(link)).text
    row = page.partition(">args --rate")[2].partition("</tr>")[0]
    assert ("differs" in row, "0.0<" in row, "0.1<" in row) == (True, True, True)


def test_the_documents_are_the_records(browser: Browser) -> None:
    found = browser.get(f"/api/v1{address(*IDS)}").json()
    assert [each["run_id"] for each in found] == IDS
