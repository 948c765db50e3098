"""Requests, read as the launch flow reads what was dropped or published."""

import json
from typing import Any

from tests.core.shipped import REQUEST_RULES
from tests.narrowing import instance_of
from trainmaster.orchestrator.core.documents.document import parse_document
from trainmaster.orchestrator.core.documents.faults import Fault, Refused
from trainmaster.orchestrator.core.requests.reading import checked_request, with_places
from trainmaster.orchestrator.core.requests.request import Request, RequestRules, too_large


def parse_request(
    content: bytes, *, as_json: bool, request_rules: RequestRules, name: str | None = None
) -> Request | Refused:
    """The request, or every fault of text, schema and policy."""
    refusal = too_large(len(content))
    if refusal is not None:
        return refusal
    read = parse_document(content, as_json=as_json)
    return with_places(checked_request(read, request_rules, name=name), read, request_rules.policy)


def answer_to(
    written: Any, *, request_rules: RequestRules = REQUEST_RULES, name: str | None = None
) -> Request | Refused:
    """The result of parsing a request: a text is YAML, any other value is written as JSON."""
    as_json = not isinstance(written, str)
    text = json.dumps(written) if as_json else written
    return parse_request(text.encode(), as_json=as_json, request_rules=request_rules, name=name)


def sound_request(written: Any, *, name: str | None = None) -> Request:
    return instance_of(Request, answer_to(written, name=name))


def told(written: Any) -> dict[str, str]:
    """The text of each fault by its path."""
    return {path: str(fault) for path, fault in faults_of(written).items()}


def faults_of(written: Any, *, name: str | None = None) -> dict[str, Fault]:
    """Each fault by its path; no path has two."""
    refused = instance_of(Refused, answer_to(written, name=name))
    faults = {fault.path: fault for fault in refused.faults}
    assert len(faults) == len(refused.faults)
    return faults
