"""A faulty request gives a report with every fault, an acknowledged event and no job."""

import random
from typing import Any

import jsonschema
import pytest

from trainmaster.client.submission.terms import schema

from .project import Project, request

pytestmark = pytest.mark.slow


def test_a_huge_upload_is_reported_acknowledged_and_submits_nothing(project: Project) -> None:
    name = "requests/huge.yaml"
    before = set(project.all_jobs())
    generation = project.upload(name, request(project.id).encode() + b" " * 50_000_000)
    status = project.final_status(name, generation)
    assert status["state"] == "rejected"
    report = project.document(project.ledger, f"rejected/{status['run_id']}.json")
    assert report is not None
    assert status["report_uri"] == f"gs://{project.ledger}/rejected/{status['run_id']}.json"
    jsonschema.validate(report, schema("rejection_report.v1"))
    assert [fault["path"] for fault in report["faults"]] == ["$"]
    record = project.record(status["run_id"])
    assert record["state"] == "rejected"
    event_id = record["source"]["event_id"]
    project.eventually(lambda: set(project.requests_to_functions(event_id)) == {200}, "acknowledged at once")
    assert set(project.all_jobs()) == before


def test_a_faulty_message_is_rejected_on_record_and_acknowledged(project: Project) -> None:
    message_id = project.publish("trainmaster-requests", random.Random(3).randbytes(100_000))

    def record() -> dict[str, Any] | None:
        every = project.records().values()
        return next((each for each in every if each["source"].get("message_id") == message_id), None)

    assert project.eventually(record, "a record of the junk message")["state"] == "rejected"
    project.eventually(
        lambda: set(project.requests_to_functions(message_id)) == {200}, "acknowledged at once"
    )
