"""What runs have cost: the command, the document and the page say the same."""

import json
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from httpx import Client as Browser

from tests.client.runs.rows import START, row, write_rows
from tests.client.served import Served, served_context
from tests.core.shipped import assert_valid
from tests.fixtures import fixture_of
from trainmaster.orchestrator.core.runs.index import IndexRow
from trainmaster.orchestrator.core.runs.states import RunState

SINCE = "2026-01-01"
PRICED: dict[str, Any] = {"currency": "USD", "at_most": Decimal(43)}


def ended(number: int, cost: str | None, **fields: Any) -> IndexRow:
    total = None if cost is None else Decimal(cost)
    return row(number, cost=total, ended_at=START + timedelta(minutes=90), **PRICED, **fields)


ROWS = [
    ended(1, "4.5", model_name="cassava", team="vision", labels={"tier": "a", "owner": "<b>ann</b>"}),
    ended(2, "0.25", model_name="cassava", team="vision", labels={"tier": "b"}),
    ended(3, None, model_name="flowers", labels={"tier": "a"}),
    row(4, model_name="flowers", state=RunState.RUNNING, **PRICED),
    row(5, model_name="toy", ended_at=START + timedelta(minutes=7)),
    row(6, model_name=None, state=RunState.REJECTED),
]


served = fixture_of(served_context, lambda served: write_rows(served, ROWS))


@pytest.mark.parametrize(
    ("by", "found"),
    [
        (
            "model",
            {"flowers": (2, "0", "43", 1), "vision/cassava": (2, "4.75", "0", 0), "toy": (1, "0", "0", 1)},
        ),
        ("team", {"none": (2, "0", "43", 1), "vision": (2, "4.75", "0", 0)}),
        ("user", {"unknown": (4, "4.75", "43", 1)}),
        ("label", {"none": (1, "0", "43", 0), "tier=a": (2, "4.5", "0", 1), "tier=b": (1, "0.25", "0", 0)}),
    ],
)
def test_runs_are_added_up_by_group_and_in_all(
    by: str, found: dict[str, tuple[int, str, str, int]], served: Served, browser: Browser
) -> None:
    done = served.trainmaster("costs", "--by", by, "--since", SINCE, "-o", "json")
    assert (done.status, done.err) == (0, "")
    document = json.loads(done.out)
    assert_valid(document, "costs.v1")
    groups = {
        each["name"]: (each["runs"], each["cost"], each["at_most"], each["unpriced"])
        for each in reversed(document["groups"])
    }
    assert found.items() <= groups.items()
    assert [each["cost"] for each in document["total"]] == ["4.75", "0"]
    assert document["scanned"] == len(ROWS)
    assert browser.get("/api/v1/costs", params={"by": by, "since": SINCE}).json() == document


def test_the_table_has_the_dearest_group_first_and_the_total_last(served: Served) -> None:
    header, *lines = served.trainmaster("costs", "--since", SINCE).out.splitlines()
    assert header.split() == ["MODEL", "RUNS", "COST", "ACTIVE", "MAY", "STILL", "COST", "UNKNOWN"]
    assert lines[0].split() == ["flowers", "2", "0.00", "USD", "1", "≤", "43.00", "USD", "1"]
    assert [line.split()[0] for line in lines] == ["flowers", "vision/cassava", "toy", "total", "total"]
    assert served.trainmaster("costs", "--since", SINCE, "--before", "2026-01-02").err == "No run matches.\n"
    assert served.trainmaster("costs", "--by", "region").status == 2


def test_the_page_shows_the_groups_as_text_and_what_else_it_can_show(browser: Browser) -> None:
    page = browser.get("/costs", params={"by": "label", "since": SINCE})
    assert page.status_code == 200
    assert "owner=&lt;b&gt;ann&lt;/b&gt;" in page.text
    assert "≤ 43.00 USD" in page.text
    assert "<code>trainmaster costs --by label --since 2026-01-01</code>" in page.text
    assert 'href="/costs?since=2026-01-01&amp;by=team"' in page.text


@pytest.mark.parametrize("path", ["/costs", "/api/v1/costs"])
def test_everything_that_is_wrong_with_an_address_is_said_at_once(path: str, browser: Browser) -> None:
    wrong = browser.get(path, params={"by": "region", "since": "yesterday", "before": "?"})
    assert wrong.status_code == 400
    for said in ("by: expected one of model, team, user, label, found ", "since: ", "before: "):
        assert said in wrong.text
