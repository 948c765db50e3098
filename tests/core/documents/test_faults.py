"""The entry of a fault in a report."""

from jsonschema import Draft202012Validator

from tests.core.shipped import schema
from trainmaster.orchestrator.core.documents.faults import MAX_FAULTS, TEXT_MAX_CHARS, Fault, Refused

REPORT = Draft202012Validator(schema("rejection_report.v1"))


def test_a_report_is_bounded_in_the_number_and_the_length_of_its_faults() -> None:
    """A path has every key of its place: one of 100,000 characters is below the limit of a request's size."""
    long = "k" * 100_000
    fault = Fault(at=("env", long, 1), problem=long, found=long, allowed=long, repair=long)
    faults = Refused(faults=(fault,) * (MAX_FAULTS + 50)).faults
    documents = [each.document for each in faults]
    source = {"kind": "object", "event_id": "1", "event_time": "2026-03-04T12:00:00Z"}
    REPORT.validate({"schema": "rejection_report.v1", "run_id": "a", "source": source, "faults": documents})
    assert len(documents) == MAX_FAULTS + 1
    assert {len(str(text)) for text in documents[0].values()} == {TEXT_MAX_CHARS}
    assert documents[-1]["problem"] == "50 more faults are not listed"
    assert str(documents[0]["path"]).startswith("$.env.kkk")
