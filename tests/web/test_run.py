"""The page of a run, and its documents, over runs on real storage and logging servers."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator

from tests.cli.runs.records import rejected, run_of, waiting
from tests.client.logged import Logged, logged_context, progress
from tests.client.served import no_jobs, run_record
from tests.core.shipped import assert_valid
from tests.fixtures import fixture_of
from tests.web.consoles import console_of
from trainmaster.client.clients import Clients
from trainmaster.client.find import Run
from trainmaster.client.submission.terms import schema
from trainmaster.client.watch.timeline import RunStage
from trainmaster.web.pages.run.drawings import stage_rows, steady_time
from trainstack.http import in_thread, serving
from trainstack.monitoring.api import application
from trainstack.monitoring.samples import CPU, Point, Samples, SeriesKey

Browser = httpx.Client
LINES = 450
HOSTILE = '<script>alert("x")</script>\u202e\x1b[31m\x00'
ESCAPED = "&lt;script&gt;alert(&#34;x&#34;)&lt;/script&gt;\\u202e"


def called(run_id: str, run: Run) -> Run:
    return run_of(run.document | {"run_id": run_id})


FAILED, REJECTED, WAITING = (
    called("fails", run_of(run_record("failed"))),
    called("is-rejected", rejected()),
    called("waits", waiting()),
)


@pytest.fixture(scope="module")
def browser(logged: Logged) -> Iterator[Browser]:
    samples = Samples(2.0)
    for number in range(10):
        point = Point(datetime.now(UTC).timestamp() - number, 1.0, number / 10)
        samples.add(SeriesKey(CPU, "1", "workerpool1-0"), point)
    with no_jobs() as vertex_url, in_thread(lambda: serving(application(samples))) as monitoring_url:
        context = replace(logged.served.clients.context, monitoring_host=monitoring_url)
        local = replace(context, logging_host=logged.url, vertex_host=vertex_url)
        with Clients(local) as clients, console_of(clients) as browser:
            yield browser


@partial(fixture_of, logged_context)
def logged(log: Logged) -> None:
    log.record("trains", job_id="1")
    for number in range(LINES):
        log.write("1", number / 10, "workerpool0-0", textPayload=f"line {number}")
    for step in range(1, 6):
        log.write("1", 50 + step, "workerpool1-0", **progress(step))
    log.write("1", 57, "workerpool0-0", textPayload=HOSTILE)
    for second, text in ((58, "INFO:root:rows 3000"), (59, "WARNING:root:few rows")):
        wrapped = {"message": text, "attrs": {"tag": "workerpool0-0"}, "levelname": "ERROR"}
        log.write("1", second, "workerpool0-0", severity="ERROR", jsonPayload=wrapped)
    ignored = {"schema": "drop_status.v1", "dropped_name": "requests/notes.yaml", "generation": 1}
    ignored |= {"state": "ignored", "reason": HOSTILE, "updated_at": "2026-03-01T12:00:00Z"}
    log.served.write("ledger", "status/requests/notes.yaml.json", ignored)
    put_away = ignored | {"dropped_name": "requests/done/trains.yaml", "run_id": "trains"}
    log.served.write("ledger", "status/requests/done/trains.yaml.json", put_away)
    for run in (FAILED, REJECTED, WAITING):
        log.served.write("ledger", f"runs/{run.record.run_id}.json", run.document)


def test_a_running_run_shows_its_state_replicas_curves_and_the_end_of_its_log(browser: Browser) -> None:
    page = browser.get("/runs/trains").text
    assert '<span class="state state-running">running</span>' in page
    assert 'id="lane-workerpool1-0"' in page
    assert "step 5/40, epoch 1/2" in page
    data = page.partition('id="curve-0-data">')[2].partition("</script>")[0]
    assert json.loads(data) == {
        "x": "step",
        "y": "loss",
        "series": [{"name": "workerpool1-0", "points": [[step, 1.5] for step in range(1, 6)]}],
    }
    assert page.count('<li id="line-') == 200
    assert f"line {LINES - 1}" in page
    assert "$ " not in page.partition("<code>trainmaster watch trains</code>")[0]


def test_a_running_run_shows_what_its_machines_do_in_their_lanes(browser: Browser) -> None:
    lane = browser.get("/runs/trains").text.partition('id="lane-workerpool1-0"')[2].partition("</tr>")[0]
    drawn = lane.partition('<svg class="spark"')[2].partition("</div>")[0]
    assert 'aria-label="CPU over time"><polyline points="0,' in drawn
    assert re.search(r"CPU \d+ %$", drawn)


def test_the_page_of_a_run_that_is_over_is_sent_once_and_is_final(browser: Browser) -> None:
    with browser.stream("GET", "/runs/fails", headers={"accept": "text/event-stream"}) as stream:
        sent = "".join(stream.iter_text())
    assert sent.count("event: page") == 1
    assert sent.count("event: final") == 1


def test_earlier_lines_are_a_link_away_without_javascript(browser: Browser) -> None:
    page = browser.get("/runs/trains").text
    shown = set()
    for _ in range(10):
        shown |= {number for number in range(LINES) if f">line {number}<" in page}
        address = page.partition('<p class="pages">')[2].partition("</p>")[0].partition('href="')[2]
        if "Earlier lines" not in address:
            break
        page = browser.get(address.partition('"')[0].replace("&amp;", "&")).text
    assert shown == set(range(LINES))


def test_the_log_is_searched_for_a_text_in_the_lines_of_a_replica(browser: Browser) -> None:
    page = browser.get("/runs/trains", params={"q": "STEP 3", "replica": "workerpool1-0"}).text
    assert page.count('<li id="line-') == 1
    assert "epoch 1/2 step 3/20" in page
    assert 'value="STEP 3"' in page
    assert "trainmaster logs trains --replica workerpool1-0" in page
    assert "No line of the log is selected." in browser.get("/runs/trains", params={"q": "nowhere"}).text


def test_a_failed_run_says_why_on_top(browser: Browser) -> None:
    record = FAILED.record
    page = browser.get(f"/runs/{record.run_id}").text
    top = page.partition('id="failure"')[2].partition("</div>")[0]
    assert record.failure is not None
    assert record.failure.message[:40] in top


def test_a_waiting_run_says_for_what_and_when_it_is_tried_again(browser: Browser) -> None:
    record = WAITING.record
    page = browser.get(f"/runs/{record.run_id}").text
    top = page.partition('id="waiting"')[2].partition("</div>")[0]
    assert record.admission.waiting is not None
    assert record.admission.waiting.reason in top
    assert 'datetime="2026-03-01T12:32:05+00:00"' in top


def test_a_rejected_run_lists_its_faults_with_their_places(browser: Browser) -> None:
    record = REJECTED.record
    assert record.rejection is not None
    page = browser.get(f"/runs/{record.run_id}").text
    top = page.partition('id="faults"')[2].partition("</section>")[0]
    for fault in record.rejection.faults or ():
        assert f"<code>{fault['path']}</code>" in top
        assert f"line {fault['line']}, column {fault['column']}" in top
    assert 'id="log"' not in page


@pytest.mark.parametrize("path", ["/runs/notes.yaml", "/drops/requests/notes.yaml"])
def test_a_file_without_a_run_has_a_page_with_the_reason(browser: Browser, path: str) -> None:
    page = browser.get(path).text
    assert '<span class="state state-ignored">ignored</span>' in page
    assert ESCAPED in page
    assert "trainmaster status requests/notes.yaml" in page


def test_a_file_that_was_put_away_has_a_page_with_the_reason_and_its_run(browser: Browser) -> None:
    page = browser.get("/drops/requests/done/trains.yaml").text
    assert ESCAPED in page
    assert 'href="/runs/trains">Its run</a>' in page
    assert "Drop a corrected file" not in page


def test_an_unknown_run_is_not_found_with_the_names_that_are_like_it(browser: Browser) -> None:
    answer = browser.get("/runs/flowers-20260101t000000-0000000000")
    assert answer.status_code == 404
    assert "No run, file or message" in answer.text


def test_documents_are_those_of_their_schemas_and_of_the_command(browser: Browser, logged: Logged) -> None:
    record = browser.get("/api/v1/runs/trains").json()
    assert_valid(record, "run_record.v2")
    assert record == json.loads(logged.served.trainmaster("status", "trains", "-o", "json").out)
    explanation = browser.get("/api/v1/runs/trains/explanation").json()
    assert_valid(explanation, "explanation.v1")
    assert explanation["run"]["run_id"] == "trains"


def test_the_log_document_continues_from_page_to_page(browser: Browser) -> None:
    lines: list[dict[str, Any]] = []
    query: dict[str, str] = {"limit": "150"}
    for _ in range(10):
        page = browser.get("/api/v1/runs/trains/log", params=query).json()
        lines = [*page["lines"], *lines]
        if page["earlier"] is None:
            break
        query["before"] = page["earlier"]
    line_schema = Draft202012Validator(schema("log_line.v1"))
    for each in lines:
        line_schema.validate(each)
    assert [each["text"] for each in lines][:LINES] == [f"line {number}" for number in range(LINES)]
    assert len(lines) == LINES + 8


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"limit": "1001"}, 400),
        ({"before": "x"}, 400),
        ({"replica": "workerpool9-0"}, 404),
        ({"limit": "0"}, 400),
    ],
)
def test_a_wrong_query_of_the_log_is_refused(browser: Browser, query: dict[str, str], status: int) -> None:
    answer = browser.get("/api/v1/runs/trains/log", params=query)
    assert answer.status_code == status
    assert answer.json()["error"]["message"]


def test_each_step_has_the_time_until_the_next_one_and_the_current_one_the_time_so_far() -> None:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    stages = [
        RunStage(title="Job submitted", at=at),
        RunStage(title="Job running", at=at + timedelta(seconds=2)),
        RunStage(title="Model exported"),
        RunStage(title="Job ended", at=at + timedelta(seconds=112)),
        RunStage(title="Last log line", at=at + timedelta(seconds=111)),  # by another service's clock
    ]
    assert [(row["title"], row["took"]) for row in stage_rows(stages)] == [
        ("Job submitted", "2.0s"),
        ("Job running", "1m 50s"),
        ("Model exported", ""),
        ("Job ended", "0.0s"),
        ("Last log line", ""),
    ]
    live = stage_rows(stages[:3], at + timedelta(seconds=100))
    assert [(row["took"], row["is_current"], row["x"], row["width"]) for row in live] == [
        ("2.0s", False, 0, 20),
        ("1m 38s", True, 20, 980),
        ("", False, 0, 0),
    ]
    assert not any(row["is_current"] for row in stage_rows(stages))


def test_the_drawing_of_a_live_run_moves_by_seconds_and_later_by_hundredths() -> None:
    at = datetime(2026, 3, 1, tzinfo=UTC)
    moved = [
        steady_time(at, at + timedelta(seconds=seconds)) - at for seconds in (0, 3.9, 201, 36_050, 36_360)
    ]
    assert [length.total_seconds() for length in moved] == [0, 3, 200, 36_000, 36_300]
