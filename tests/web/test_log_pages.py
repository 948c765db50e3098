"""Parts of a long log: its end, pages before it, and a selection."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import pytest

from tests.client.logged import Logged, logged_context
from tests.client.test_lanes import line
from tests.fixtures import fixture_of
from trainmaster.client.clients import Clients
from trainmaster.client.errors import ClientRefused
from trainmaster.client.find import Run, read_run
from trainmaster.client.logs.line import LINE_MAX_CHARS, shortened_line
from trainmaster.client.logs.read import Selection
from trainmaster.client.terminal import visible
from trainmaster.web.pages.run.log_pages import PAGE_LINES, cursor_of, parse_cursor, read_page, tail_page

LINES = 25


def test_the_end_of_a_log_is_a_page_that_says_whether_there_are_earlier_lines() -> None:
    lines = [line(number, f"line {number}") for number in range(PAGE_LINES + 1)]
    page = tail_page(lines, has_earlier=False)
    assert [page.lines[0].text, len(page.lines)] == ["line 1", PAGE_LINES]
    assert page.earlier == cursor_of(lines[1])
    assert tail_page(lines[1:], has_earlier=False).earlier is None
    assert tail_page(lines[1:], has_earlier=True).earlier == cursor_of(lines[1])


def test_a_kept_line_is_cut() -> None:
    assert len(shortened_line(line(1, "x" * 10 * LINE_MAX_CHARS)).text) == LINE_MAX_CHARS


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m and \x1b]8;;http://x\x1b\\link\x1b]8;;\x07", "red and link"),
        (" 10%|#   |\r 50%|##  |\r100%|####|", "100%|####|"),
        ("one\r\ntwo", "one\ntwo"),
        (" 1/50 ━ 2:10" + 12 * "\b" + "\r50/50 ━ 0s      ", "50/50 ━ 0s"),
        ("step 1\b2\b3", "step 3"),
        ("|\b/\b-\b", "-"),
        ("\b\bone\n  two  ", "one\n  two  "),
        ("\u202egnp.exe \u2066x \x00 \x07 \ud800", "\\u202egnp.exe \\u2066x \\x00 \\x07 \\ud800"),
        ("tab\tand\nline", "tab\tand\nline"),
        ("\x1b[31", "\\x1b[31"),
    ],
)
def test_what_cannot_be_seen_is_shown_as_an_escape(text: str, shown: str) -> None:
    assert visible(text) == shown


@partial(fixture_of, logged_context)
def logged(log: Logged) -> None:
    log.record("paged", job_id="1")
    for number in range(LINES):
        # five lines a second, so that pages end among lines of one time
        replica = f"workerpool{number % 2}-0"
        log.write("1", number // 5, replica, textPayload=f"line {number}", insertId=f"id-{number:03}")
    log.write("1", 9, "workerpool0-0", jsonPayload={"message": 'Lost the PEER "x"', "peer": "10.0.0.1"})


@pytest.fixture
def clients(logged: Logged) -> Iterator[Clients]:
    with Clients(replace(logged.served.clients.context, logging_host=logged.url)) as clients:
        yield clients


@pytest.fixture
def run(clients: Clients) -> Run:
    return read_run(clients, "paged")


def test_pages_give_every_line_once_from_the_last_to_the_first(clients: Clients, run: Run) -> None:
    texts: list[str] = []
    before: str | None = None
    for _ in range(LINES):
        page = read_page(clients, run, Selection(), limit=4, before=before)
        texts = [*(each.text for each in page.lines), *texts]
        before = page.earlier
        if before is None:
            break
    assert texts == [*(f"line {number}" for number in range(LINES)), 'Lost the PEER "x"']


@pytest.mark.parametrize(
    ("selection", "found"),
    [
        (Selection(text="LINE 24"), ["line 24"]),
        (Selection(text='peer "X"'), ['Lost the PEER "x"']),
        (Selection(text="10.0.0.1"), ['Lost the PEER "x"']),
        (Selection(text='" OR textPayload:"line'), []),
        (Selection(text="line 2", replica="workerpool1-0"), ["line 21", "line 23"]),
    ],
)
def test_a_search_finds_text_and_payloads_of_a_replica(
    clients: Clients, run: Run, selection: Selection, found: list[str]
) -> None:
    assert [each.text for each in read_page(clients, run, selection).lines] == found


@pytest.mark.parametrize(
    "text", ["", "x", "2026-11-23T00:00:00Z", "2026-11-23T00:00:00~x", "~x", "2026-13-01T00:00:00Z~x"]
)
def test_an_invalid_cursor_is_refused(text: str) -> None:
    with pytest.raises(ClientRefused, match="expected the time and id of a line"):
        parse_cursor(text)
