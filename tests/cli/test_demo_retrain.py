"""The retraining demo checks its claims against the records, and reports every claim that fails."""

import io
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console

from tests.cli.screens import assert_screen
from trainmaster.cli.demo.retraining.data import Delivery
from trainmaster.cli.demo.retraining.report import course, missing_notices, way_back
from trainmaster.cli.demo.retraining.view import doing, news, picture
from trainmaster.cli.demo.retraining.watch import RetrainSighting
from trainmaster.cli.watch.live import View

START = datetime(2026, 1, 1, tzinfo=UTC)
DONE = START + timedelta(seconds=30)
GENERATION = 7


def run(number: int, **changes: object) -> dict[str, Any]:
    by_rule = {"kind": "rule", "firing": number, "event_time": "2026-01-01T00:00:32Z"}
    return {
        "run_id": f"run-{number}",
        "state": "succeeded",
        "source": by_rule if number else {"kind": "upload"},
        "request": {
            "document": {"args": ["--data_dir=gs://data/horses/burst-1/"], "labels": {"files": "200"}}
        },
        "history": [{"state": state, "at": f"2026-01-01T00:0{number}:01Z"} for state in ("reserved", "succeeded")],
        "job": {"name": f"projects/1/locations/r/customJobs/{number}"},
        "problems": [],
        **changes,
    }  # fmt: skip


def verdict(number: int, *, promoted: bool) -> dict[str, Any]:
    reason = "val_accuracy 0.9 beats 0.5" if promoted else "val_accuracy 0.4 is not better"
    return {
        "run_id": f"run-{number}",
        "promoted": promoted,
        "reason": reason,
        "at": "2026-01-01T00:03:00Z",
        "value": 0.9,
    }


def reign(number: int, **lineage: object) -> dict[str, Any]:
    told = {
        "event_id": "new_data/2026-01-01T00:00:30.000000Z",
        "request_uri": "gs://inbox/rules/horses.yaml",
        "request_generation": GENERATION,
        "firing": 1,
        "job_name": "projects/1/locations/r/customJobs/1",
        **lineage,
    }
    return {
        "number": number,
        "run_id": f"run-{number - 1}",
        "value": 0.9,
        "contest": {"metric": "val_accuracy"},
        "lineage": told,
    }


def champion(*promoted: bool, **lineage: object) -> dict[str, Any]:
    return {
        "model_name": "horses-retrain",
        "current": reign(2, **lineage),
        "history": [reign(1), reign(2, **lineage)],
        "considered": [verdict(number, promoted=each) for number, each in enumerate(promoted)],
    }


def notices() -> list[Mapping[str, Any]]:
    states = [
        {"type": f"trainmaster.run.{state}.v1", "id": f"run-{number}/{state}", "subject": f"run-{number}"}
        for number in range(3)
        for state in ("reserved", "succeeded")
    ]
    promotions = [
        {"type": "trainmaster.champion.promoted.v1", "id": f"champions/horses-retrain/{number}", "subject": "horses-retrain"}
        for number in (1, 2)
    ]  # fmt: skip
    return [*states, *promotions]


BURST = Delivery(
    prefix="gs://data/horses/burst-1/", files=200, first_at=START + timedelta(seconds=20), done_at=DONE
)
WHOLE = RetrainSighting(
    started_at=START,
    deliveries=(BURST, Delivery(prefix="gs://data/horses/burst-2/", files=100)),
    status={"state": "accepted", "generation": GENERATION, "updated_at": "2026-01-01T00:00:10Z", "firings": 2},
    rule={"number": 2, "arrived": {"count": 100}},
    runs=[run(0), run(1), run(2)],
    champion=champion(True, True, False),
    notices=notices(),
)  # fmt: skip


def test_a_course_as_it_should_be_is_agreed_with() -> None:
    assert list(course(WHOLE)) == []
    assert list(missing_notices(WHOLE)) == []
    assert [wrong for _, _, wrong in way_back(WHOLE, GENERATION) if wrong] == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"runs": [run(0), run(1), run(2), run(3)]}, "run-3 by firing 3"),
        ({"runs": [run(0), run(1)]}, "should have started one run each"),
        (
            {"runs": [run(0), run(1, request={"document": {"labels": {"files": "7"}}}), run(2)]},
            "run-1 was started for 7 files",
        ),
        ({"champion": champion(True, True, True)}, "the third not"),
        (
            {"champion": {**champion(True, True, False), "current": reign(3)}},
            "the champion should be run-1; it is run-2",
        ),
    ],
)
def test_every_other_course_is_reported(changes: dict[str, Any], said: str) -> None:
    assert any(said in problem for problem in course(replace(WHOLE, **changes)))


def test_each_notice_that_was_not_heard_is_named() -> None:
    assert list(missing_notices(replace(WHOLE, notices=notices()[1:-1]))) == ["run-0 reserved", "promotion 2"]


@pytest.mark.parametrize(
    "lineage",
    [
        {"event_id": "new_data/2026-01-01T00:00:31.000000Z"},
        {"event_id": "schedule/2026-01-01T00:00:30.000000Z"},
        {"request_generation": 6},
        {"firing": 2},
        {"job_name": "projects/1/locations/r/customJobs/2"},
    ],
)
def test_a_lineage_that_leads_elsewhere_is_reported(lineage: dict[str, object]) -> None:
    astray = replace(WHOLE, champion=champion(True, True, False, **lineage))
    assert len([wrong for _, _, wrong in way_back(astray, GENERATION) if wrong]) == 1


def test_a_champion_that_was_trained_on_other_data_is_reported() -> None:
    elsewhere = run(1, request={"document": {"args": ["--data_dir=gs://data/horses/burst-2/"]}})
    seen = replace(WHOLE, runs=[run(0), elsewhere, run(2)])
    (wrong,) = [wrong for _, _, wrong in way_back(seen, GENERATION) if wrong]
    assert "expected ['--data_dir=gs://data/horses/burst-1/']" in wrong


@pytest.mark.parametrize(
    ("changes", "idle"),
    [
        ({"rule": {"number": 2}}, True),
        ({}, False),
        ({"rule": {"number": 2, "firing": {}}}, False),
        ({"rule": {"number": 2}, "runs": [run(0, state="running")]}, False),
    ],
)
def test_it_is_idle_when_nothing_more_can_start(changes: dict[str, Any], *, idle: bool) -> None:
    assert replace(WHOLE, **changes).is_idle is idle


def test_a_static_terminal_shows_each_event_once() -> None:
    out = io.StringIO()
    shown = View(Console(file=out, force_terminal=False, width=200), picture=picture, news=news, doing=doing)
    with shown.running():
        for seen in (RetrainSighting(started_at=START), WHOLE, WHOLE):
            shown.show(seen)
    said = out.getvalue()
    for line in (
        "the rule is accepted",
        "burst 1: 200 files arrived after 10.0 s",
        "the rule has counted 100 arrivals",
        "the rule fires, number 1, for 200 new files",
        "run-2 not promoted: val_accuracy 0.4 is not better",
    ):
        assert said.count(line) == 1, said


@pytest.mark.parametrize("seen", [RetrainSighting(started_at=START), WHOLE])
@pytest.mark.parametrize("width", [80, 200])
def test_the_live_picture_fits_the_terminal(seen: RetrainSighting, width: int) -> None:
    console = Console(file=io.StringIO(), width=width, height=24, force_terminal=True)
    assert len(console.render_lines(picture(seen, console))) < 24


@pytest.mark.parametrize("width", [80, 120])
def test_the_screen_is_the_reviewed_one(width: int) -> None:
    console = Console(file=io.StringIO(), width=width, height=24, force_terminal=True, color_system=None)
    ids = {
        "run-0": "demo_retrain-20261123t022010-813779f5a7",
        "run-1": "horses-20261123t022046-83a1cf4193",
        "run-2": "horses-20261123t022110-3c9e1ff234",
    }
    whole = json.dumps([WHOLE.runs, WHOLE.champion, WHOLE.notices])
    for short, long in ids.items():
        whole = whole.replace(short, long)
    runs, champion_, notices_ = json.loads(whole)
    with console.capture() as captured:
        console.print(picture(replace(WHOLE, runs=runs, champion=champion_, notices=notices_), console))
    assert_screen(f"demo.retraining.{width}", captured.get())
    assert all(run_id in captured.get() for run_id in ids.values())
