"""The answer and the log of an entry point whose flow fails, in the framework's application."""

import json
import sys
from pathlib import Path

import functions_framework
import pytest

SOURCE = """
from datetime import UTC, datetime

from main import _entry_point
from trainmaster.orchestrator.core.errors import GenerationMoved, LeaseHeld, RecordExists, RecordMoved, ServiceFailed


@_entry_point
def lease_held(_):
    try:
        raise RecordExists("run-1")
    except RecordExists:
        raise LeaseHeld("run-1", datetime(2026, 1, 1, tzinfo=UTC))


@_entry_point
def record_moved(_):
    raise RecordMoved("run-1")


@_entry_point
def generation_moved(_):
    raise GenerationMoved("gs://ledger/runs/run-1.json", 1)


@_entry_point
def service_failed(_):
    raise ServiceFailed("Vertex AI", "create the job", "503")
"""
EVENT = {"ce-id": "7", "ce-source": "s", "ce-specversion": "1.0", "ce-type": "t"}


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", sys.path.copy())  # the framework appends the source's folder
    path = tmp_path / "failing_flows.py"
    path.write_text(SOURCE)
    return path


@pytest.mark.parametrize("flow", ["lease_held", "record_moved", "generation_moved"])
def test_a_duplicate_of_an_event_in_flight_is_one_plain_line_and_is_delivered_again(
    flow: str, source: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    app = functions_framework.create_app(flow, str(source), "cloudevent")
    answer = app.test_client().post("/", headers=EVENT)
    assert answer.status_code == 500
    printed = capsys.readouterr()
    (line,) = printed.out.splitlines()
    assert json.loads(line)["severity"] == "WARNING"
    assert "run-1" in json.loads(line)["message"]
    assert (printed.err, caplog.records) == ("", [])


def test_any_other_failure_is_answered_alike_and_keeps_its_traceback(
    source: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    known, other = (
        functions_framework.create_app(flow, str(source), "cloudevent").test_client().post("/", headers=EVENT)
        for flow in ("lease_held", "service_failed")
    )
    assert (other.status, other.data, other.headers) == (known.status, known.data, known.headers)
    (record,) = caplog.records
    assert record.exc_info is not None
    assert capsys.readouterr().out.count("\n") == 2
