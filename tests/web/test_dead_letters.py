"""The page of dead letters, on real Pub/Sub and logging servers: shown at once, read afterwards, replayed once."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.client.dead_letter_project import DeadLetterProject, dead_letter_project
from tests.client.letters import OBJECT, forwarded, letter
from tests.core.shipped import assert_valid
from tests.web.consoles import console_of, form
from trainmaster.client.clients import Clients
from trainmaster.client.context import choose_context
from trainmaster.client.dead_letters.letter import event_key
from trainmaster.web.pages import dead_letters

HOSTILE = '<script>alert("x")</script>\u202e\x00'


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DeadLetterProject]:
    with dead_letter_project(tmp_path, monkeypatch) as place:
        yield place


@contextmanager
def browsing(place: DeadLetterProject, *, writable: bool = True) -> Iterator[httpx.Client]:
    state = place.env_file.parent
    context = choose_context(f"local:{state}", {}, directory=state, settings=state)
    with Clients(context) as clients, console_of(clients, writable=writable) as browser:
        yield browser


def test_the_page_is_shown_before_the_letters_are_read(place: DeadLetterProject) -> None:
    place.bury(b"order", forwarded({}))
    with browsing(place) as browser:
        page = browser.get("/dead-letters").text
    assert 'hx-get="/dead-letters/list" hx-trigger="load"' in page
    assert '<a href="/dead-letters/list">Show the letters</a>' in page
    assert "data-live" not in page, "it is read when asked, not again and again"


def test_a_letter_shows_why_how_often_and_what_as_text(place: DeadLetterProject) -> None:
    attributes = forwarded({**OBJECT, "objectId": f"requests/{HOSTILE[:-1]}.json"})
    place.bury(HOSTILE.encode(), attributes)
    place.failed(event_key(letter(attributes, HOSTILE.encode())), HOSTILE)
    binary = place.bury(b"\xff\x00", {})
    with browsing(place) as browser:
        page = browser.get("/dead-letters/list").text
        document = browser.get("/api/v1/dead-letters").json()
        counted = browser.get("/overview/dead-letters").text
    assert "<b>2</b><span>dead letters" in counted
    assert page.count("&lt;script&gt;alert(") == 4, "object, attribute, reason and payload"
    assert "<script>alert" not in page
    assert not {"\u202e", "\x00"} & set(page)
    assert 'class="number">50</td>' in page
    row = page.partition(f'<tr id="letter-{binary}">')[2].partition("</tr>")[0]
    assert "<pre>ff 00</pre>" in row
    assert "does not name the subscription that dead-lettered it" in row
    assert "checkbox" not in row
    assert_valid(document, "dead_letters.v1")
    assert [each["id"] for each in document["letters"]][-1] == binary


def test_a_replay_says_what_it_does_and_does_it_once(
    place: DeadLetterProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters, "OUTCOME_WITHIN_S", 0.0)  # no function here reports one
    wanted, other = (place.bury(data, forwarded({})) for data in (b"wanted", b"other"))
    with browsing(place) as browser:
        proposal = browser.get(f"/dead-letters/replay?id={wanted}").text
        assert "Replay 1 dead letter?" in proposal
        assert f"<code>trainmaster dead-letters replay {wanted}</code>" in proposal
        done = browser.post("/dead-letters/replay", data=form(ids=wanted))
        assert (done.status_code, done.headers["location"]) == (303, "/dead-letters?done=1")
        assert "1 replayed." in browser.get(done.headers["location"]).text
        assert [message.data for message in place.put_back()] == [b"wanted"]
        gone = browser.post("/dead-letters/replay", data=form(ids=wanted))
        assert (gone.status_code, wanted in gone.text) == (404, True)
        rest = browser.post("/api/v1/dead-letters/replay", json=form(ids="all")).json()
    assert [each["id"] for each in rest["letters"]] == [other]
    assert [message.data for message in place.put_back()] == [b"other"]


def test_a_letter_that_cannot_be_put_back_is_counted(place: DeadLetterProject) -> None:
    stray = place.bury(b"stray", {})
    with browsing(place) as browser:
        done = browser.post("/dead-letters/replay", data=form(ids="all"))
        assert done.headers["location"] == "/dead-letters?done=1&failed=1"
        assert "1 of them failed again or could not be put back" in browser.get(done.headers["location"]).text
        assert f'id="letter-{stray}"' in browser.get("/dead-letters/list").text


@pytest.mark.parametrize("ids", ["", " ", " ".join(map(str, range(201)))])
def test_ids_are_required_and_bounded(place: DeadLetterProject, ids: str) -> None:
    with browsing(place) as browser:
        assert browser.get("/dead-letters/replay", params={"id": ids}).status_code == 400
        refused = browser.post("/dead-letters/replay", data=form(ids=ids))
    assert refused.status_code == 422
    assert "expected 1 to 200 ids" in refused.text
