"""A log line is one entry, with our keys alone, whatever it quotes."""

import json
import traceback
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trainmaster.orchestrator import log

HOSTILE = (
    'x\n{"severity": "EMERGENCY", "message": "forged"}',
    'x", "severity": "EMERGENCY", "logging.googleapis.com/trace": "t',
    "\r\x1b[2K\x1b[31mgone\x1b[0m",
    "\u202elanimret\u2066\x85\u2028\x9b31m\x7f\x00",
    "\ud800",
)


def entry_of(capsys: pytest.CaptureFixture[str], severity: str, message: str, **fields: object) -> Any:
    capsys.readouterr()
    log.line(severity, message, **fields)
    written = capsys.readouterr().out
    assert written.endswith("\n")
    assert written[:-1].isprintable()
    assert written.isascii()
    return json.loads(written)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_breaks_out_of_its_field(capsys: pytest.CaptureFixture[str], text: str) -> None:
    entry = entry_of(capsys, "INFO", f"a request: {text}", run_id=text, error=None)
    assert set(entry) == {"severity", "message", "run_id"}
    assert entry["severity"] == "INFO"
    assert entry["message"].isprintable()
    assert entry["run_id"].isprintable()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=st.text())
def test_decoded_messages_are_printable_and_indented(capsys: pytest.CaptureFixture[str], text: str) -> None:
    entry = entry_of(capsys, "INFO", f"a request: {text}", event_id=f"id {text}")
    first, *more = entry["message"].split("\n")
    assert all(line.startswith("  ") for line in more)
    assert all(line.isprintable() for line in (first, *more, entry["event_id"]))
    if text.isprintable():
        assert entry["message"] == f"a request: {text}"


def test_lists_and_tracebacks_of_ours_keep_their_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert entry_of(capsys, "ERROR", "two faults:\n  one\n  two")["message"] == "two faults:\n  one\n  two"
    try:
        int("x\n\x1b[31m")
    except ValueError:
        trace = traceback.format_exc()
    assert entry_of(capsys, "CRITICAL", trace)["message"].splitlines() == trace.splitlines()
    assert "\x1b" not in entry_of(capsys, "CRITICAL", f"{trace}\x1b[31m")["message"]


def test_a_text_too_long_for_an_entry_loses_its_middle(capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    log.line("ERROR", "begin " + "\U0001f4a9" * 300_000 + " end", event_id="i" * 100_000)
    written = capsys.readouterr().out
    assert len(written) < 256 * 1024
    message = json.loads(written)["message"]
    assert message.startswith("begin ")
    assert message.endswith(" end")
    assert "300010 characters" in message
