"""The lines that `up` prints about runs: each notice once, in plain words, in any terminal or pipe."""

import base64
import json
import re
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.client.rule_documents import example
from trainmaster.cli.stack.news import REMEMBERED, News
from trainstack.events.cloudevent import Message, from_message


def delivered(data: bytes) -> bytes:
    message = Message(data=data, attributes={}, message_id="1", publish_time=datetime(2026, 3, 1, tzinfo=UTC))
    return from_message(
        message, topic_name="projects/p/topics/t", subscription_name="projects/p/subscriptions/s"
    ).body


def lines_of(*notices: dict[str, Any]) -> list[str]:
    lines: list[str] = []
    news = News(lines.append)
    for notice in notices:
        news.show(delivered(json.dumps(notice).encode()))
    return lines


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("succeeded", r" succeeded  gs://\S+$"),
        (
            "failed",
            r"  c-20260301t122200-a781e6ad62  failed  workerpool1-0: ValueError: no data in gs://.*1000$",
        ),
        ("promoted", r" champion promoted  gs://\S+$"),
        ("cap_reached", r" cap reached  .+ runs"),
    ],
)
def test_a_line_has_the_time_the_subject_the_change_and_the_model_or_reason(name: str, expected: str) -> None:
    notice = example(f"notice.v1.{name}")
    (line,) = lines_of(notice)
    at = datetime.fromisoformat(notice["time"]).astimezone()
    assert line.startswith(f"{at:%H:%M:%S}  {notice['subject']}  ")
    assert re.search(expected, line), line


def test_a_notice_that_is_delivered_twice_is_printed_once() -> None:
    failed, succeeded = (example(f"notice.v1.{name}") for name in ("failed", "succeeded"))
    assert len(lines_of(failed, succeeded, failed)) == 2


def test_no_more_ids_are_kept_than_the_limit() -> None:
    failed = example("notice.v1.failed")
    others = [{**failed, "id": str(number)} for number in range(REMEMBERED)]
    assert len(lines_of(failed, *others, failed)) == REMEMBERED + 2


def test_control_characters_of_a_reason_do_not_reach_the_terminal() -> None:
    failed = example("notice.v1.failed")
    failed["data"]["error"]["message"] = "bad\x1b[2J\nworse"
    (line,) = lines_of(failed)
    assert line.endswith("bad [2J worse")


@pytest.mark.parametrize("data", [b"", b"no JSON", b"[]", b'{"id": 1, "time": "x"}', b"[" * 100_000])
def test_a_message_that_is_not_a_notice_is_ignored(data: bytes) -> None:
    lines: list[str] = []
    news = News(lines.append)
    news.show(delivered(data))
    news.show(b'{"message": {"data": "' + base64.b64encode(data) + b'"')
    assert lines == []


def test_a_pipe_without_a_reader_does_not_disturb_the_stack() -> None:
    def write(_line: str) -> None:
        raise BrokenPipeError

    news = News(write)
    news.show(delivered(json.dumps(example("notice.v1.failed")).encode()))
