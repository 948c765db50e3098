"""`trainmaster dead-letters` on real servers: what it shows, what it puts back, and that it does so once."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from tests.client.dead_letter_project import DEAD_TOPIC, OTHERS, DeadLetterProject, dead_letter_project
from tests.client.letters import OBJECT, SOURCE, forwarded, letter
from tests.core.shipped import assert_valid
from trainmaster.cli.command import main
from trainmaster.client.dead_letters.letter import event_key
from trainstack.http import in_thread, serving


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DeadLetterProject]:
    with dead_letter_project(tmp_path, monkeypatch) as place:
        yield place


def test_the_list_says_what_failed_where_how_often_and_why_and_leaves_it_there(
    place: DeadLetterProject, capsys: pytest.CaptureFixture[str]
) -> None:
    message_id = place.bury(b"order", forwarded({}))
    object_id = place.bury(b"{}", forwarded(OBJECT))
    key = event_key(letter(forwarded(OBJECT)))
    place.failed(key, "Traceback:\nolder")
    place.failed(key, "gs://ledger/rules/book.json cannot be read\x1b[2J\u202e")
    for _ in range(2):  # looking takes nothing away
        assert main(["dead-letters", "ls"]) == 0
        shown = capsys.readouterr().out
        first, second = shown.split(f"{object_id}  ")
        assert first.startswith(f"{message_id}  {SOURCE}\n")
        assert "no log line says why" in first
        assert "after 50 deliveries" in first
        assert "gs://inbox/rules/a\\x1b[31m b.yaml#17" in second
        assert "reason    DocumentDamaged: gs://ledger/rules/book.json cannot be read" in second
        assert not {"\x1b", "\u202e"} & set(shown)
    assert place.put_back() == []


def test_a_letter_is_put_back_once_as_what_it_was(
    place: DeadLetterProject, capsys: pytest.CaptureFixture[str]
) -> None:
    attributes = forwarded({"idempotency_key": "k"})
    letter_id = place.bury(b"order", attributes)
    place.failed(event_key(letter(attributes, b"order")), "no", event_id="4711")
    assert main(["dead-letters", "replay", "--wait-s", "0"]) == 0
    assert f"{letter_id}  replayed; the function has not reported on it yet" in capsys.readouterr().out
    (message,) = place.put_back()
    assert message.data == b"order"
    assert dict(message.attributes) == {
        "idempotency_key": "k",
        "trainmaster_replayed_id": "4711",
        "trainmaster_replayed_publish_time": "2026-03-01T11:00:00.123+00:00",
    }
    assert main(["dead-letters", "replay", "--wait-s", "0"]) == 0
    output = capsys.readouterr()
    assert (output.out, output.err) == ("", "No dead letters.\n")
    assert place.put_back() == []


def test_programs_get_the_letters_with_their_payloads(
    place: DeadLetterProject, capsys: pytest.CaptureFixture[str]
) -> None:
    attributes = forwarded({"idempotency_key": "k"})
    text, binary, cut = (
        place.bury(data, attributes) for data in (b'{"a": 1}', b"\xff\xfe", "é".encode() * 3000)
    )
    place.failed(event_key(letter(attributes, b'{"a": 1}')), "no\x1b[2J", event_id="4711")
    assert main(["dead-letters", "ls", "-o", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert_valid(document, "dead_letters.v1")
    found = {each["id"]: each for each in document["letters"]}
    assert found[text]["text"] == '{"a": 1}'
    assert found[text]["reason"] == "DocumentDamaged: no [2J"
    assert found[text]["deliveries"] == 50
    assert found[text]["attributes"] == {"idempotency_key": "k"}
    assert found[binary]["hex"] == "ff fe"
    assert found[cut]["text"] == "é" * 2048
    assert found[cut]["size_bytes"] == 6000
    assert main(["dead-letters", "ls", "-o", "name"]) == 0
    assert set(capsys.readouterr().out.split()) == {text, binary, cut}


def test_only_the_letters_that_are_named_are_put_back(
    place: DeadLetterProject, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted, other = (place.bury(data, forwarded({})) for data in (b"wanted", b"other"))
    assert main(["dead-letters", "replay", "--wait-s", "0", wanted, "12345"]) == 3
    output = capsys.readouterr()
    assert "12345 is not a dead letter here" in output.err
    assert [message.data for message in place.put_back()] == [b"wanted"]
    assert main(["dead-letters", "ls"]) == 0
    shown = capsys.readouterr().out
    assert other in shown
    assert wanted not in shown


def test_a_letter_that_cannot_be_put_back_stays_and_the_others_go(
    place: DeadLetterProject, capsys: pytest.CaptureFixture[str]
) -> None:
    stray = place.bury(b"stray", {})
    homeless = {**forwarded({}), "CloudPubSubDeadLetterSourceSubscription": "gone"}
    lost = place.bury(b"lost", homeless)
    place.bury(b"sound", forwarded({}))
    assert main(["dead-letters", "replay", "--wait-s", "0"]) == 1
    shown = capsys.readouterr().out
    assert (
        f"{stray}  not replayed; it stays a dead letter: message {stray} does not name the subscription"
        in shown
    )
    assert f"{lost}  not replayed; it stays a dead letter: " in shown
    assert [message.data for message in place.put_back()] == [b"sound"]
    assert main(["dead-letters", "ls"]) == 0
    shown = capsys.readouterr().out
    assert stray in shown
    assert lost in shown


def test_a_letter_does_not_choose_where_it_is_published(
    place: DeadLetterProject, capsys: pytest.CaptureFixture[str]
) -> None:
    named = "CloudPubSubDeadLetterSourceSubscription"
    forged = place.bury(b"forged", {**forwarded({}), named: OTHERS})
    foreign = place.bury(b"foreign", {**forwarded({}), f"{named}Project": "other-project"})
    assert main(["dead-letters", "ls"]) == 0
    assert f"{foreign}  cannot be replayed: message {foreign} names a subscription" in capsys.readouterr().out
    assert main(["dead-letters", "replay", "--wait-s", "0"]) == 1
    shown = capsys.readouterr().out
    assert f"{OTHERS} sends its dead letters to no topic, not to {DEAD_TOPIC}" in shown
    assert (
        f"{foreign}  not replayed; it stays a dead letter: message {foreign} names a subscription of the project"
        in shown
    )
    assert place.put_back(OTHERS) == []
    assert main(["dead-letters", "ls"]) == 0
    assert forged in capsys.readouterr().out


def test_hundreds_of_letters_are_pulled_in_parts_and_all_are_put_back(place: DeadLetterProject) -> None:
    futures = [
        place.clients.publisher.publish(DEAD_TOPIC, b"%d" % number, **forwarded({})) for number in range(250)
    ]
    for future in futures:
        future.result(timeout=60)
    assert main(["dead-letters", "replay", "--wait-s", "0"]) == 0
    back: set[bytes] = set()
    while arrived := place.put_back():
        back |= {message.data for message in arrived}
    assert back == {b"%d" % number for number in range(250)}


@contextmanager
def cloud_logging(answers: Sequence[dict[str, Any] | int]) -> Iterator[tuple[str, list[Any]]]:
    """Its URL, and what it was asked. It answers each question with the next of `answers`, then with the last."""
    asked: list[Any] = []

    async def answer(request: Request) -> JSONResponse:
        asked.append(await request.json())
        found = answers[min(len(asked), len(answers)) - 1]
        return (
            JSONResponse({"error": {"message": "quota"}}, found)
            if isinstance(found, int)
            else JSONResponse(found)
        )

    app = Starlette(routes=[Route("/v2/entries:list", answer, methods=["POST"])])
    with in_thread(lambda: serving(app)) as url:
        yield url, asked


def test_an_exhausted_log_quota_is_reported_and_the_letters_are_replayed(
    place: DeadLetterProject, capsys: pytest.CaptureFixture[str]
) -> None:
    """Cloud Logging takes 60 queries a minute: many letters are asked about in one."""
    for number in range(45):
        place.bury(b"%d" % number, forwarded({}))
    with cloud_logging([{}, 429]) as (url, asked):
        place.read_logs_at(url)
        assert main(["dead-letters", "replay"]) == 0
    output = capsys.readouterr()
    assert len(asked) == 2
    assert "does not report their outcome: POST" in output.err
    assert output.out.count("replayed; the function has not reported on it yet") == 45
    assert len(place.put_back()) == 45


def test_the_log_is_read_only_until_every_letters_last_failure_is_known(
    place: DeadLetterProject, capsys: pytest.CaptureFixture[str]
) -> None:
    place.bury(b"order", forwarded({}))
    fields = {
        "event_key": event_key(letter(forwarded({}), b"order")),
        "error": "ServiceFailed",
        "message": "no",
    }
    entry = {"logName": "l", "resource": {"type": "global"}, "severity": "WARNING", "jsonPayload": fields}
    with cloud_logging([{"entries": [entry] * 50, "nextPageToken": "more"}]) as (url, asked):
        place.read_logs_at(url)
        assert main(["dead-letters", "ls"]) == 0
    assert "reason    ServiceFailed: no" in capsys.readouterr().out
    assert len(asked) == 1


def test_a_project_without_dead_letters_is_reported_with_what_is_missing(
    place: DeadLetterProject, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dead-letters", "replay", "--context", f"local/bare:{place.env_file.parent}"]) == 3
    assert "of the topology: deploy it." in capsys.readouterr().err
