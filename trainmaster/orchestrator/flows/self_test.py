"""Self-tests are answered in the ledger, where whoever asked looks. No run, rule or champion is touched."""

from dataclasses import replace
from typing import Any

from trainmaster.orchestrator.core.admission.cost import priced
from trainmaster.orchestrator.core.documents.document import is_json
from trainmaster.orchestrator.core.events.self_test import Answer, DryRun, MarkedEntry
from trainmaster.orchestrator.core.requests.reading import request_in
from trainmaster.orchestrator.core.requests.request import Refused
from trainmaster.orchestrator.core.requests.submission import submission_of
from trainmaster.orchestrator.flows.services import Happened, Services

RUN_ID = "dry-run"
"""Stands in the printed job where a run's id would; no run has it, for a run's id ends with a hash."""


def answer_entry(services: Services, entry: MarkedEntry) -> Happened:
    """Tell that the entry came. Safe to repeat: the first answer stands.

    Raises:
        ServiceFailed: the answer may not be written.
    """
    answer = Answer(
        self_test_id=entry.self_test_id,
        entry_point="on_job_log",
        asked_at=entry.written_at,
        answered_at=services.clock.now(),
    )
    return _answered(services, answer, "a log entry came")


def try_request(services: Services, dry_run: DryRun) -> Happened:
    """Check the request as one that is to be run, build its job, and submit nothing. Safe to repeat.

    Raises:
        PolicyInvalid: the deployed policy cannot be used.
        ServiceFailed: the answer may not be written.
    """
    content = dry_run.content
    standards = services.standards()
    read = request_in(content, as_json=is_json(content), standards=standards)
    request = priced(read, standards.policy, services.prices)
    verdict: dict[str, Any] = {"accepted": not isinstance(request, Refused)}
    if isinstance(request, Refused):
        verdict["faults"] = [fault.document for fault in request.faults]
    else:
        target = replace(services.target, region=request.document["region"])
        submission = submission_of(RUN_ID, request.spec, target)
        verdict["warnings"] = [fault.document for fault in request.warnings]
        verdict["submission"] = {
            "parent": submission.parent,
            "kind": str(submission.kind),
            "body": submission.body,
        }
    answer = Answer(
        self_test_id=dry_run.self_test_id,
        entry_point="on_request_published",
        asked_at=dry_run.published_at,
        answered_at=services.clock.now(),
        verdict=verdict,
    )
    return _answered(services, answer, f"a request was tried, and {_word(request)}")


def _word(request: object) -> str:
    return "refused" if isinstance(request, Refused) else "found sound"


def _answered(services: Services, answer: Answer, what: str) -> Happened:
    uri = services.self_tests.answer(answer)
    return Happened(message=f"self-test {answer.self_test_id}: {what}; {uri}")
