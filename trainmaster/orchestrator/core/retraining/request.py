"""The request of one firing: the rule's own, or its template's, with its places filled."""

import json

from trainmaster.orchestrator.core.documents.faults import Fault
from trainmaster.orchestrator.core.requests.request import Refused
from trainmaster.orchestrator.core.retraining.rules.filling import filled, places_in, unfilled
from trainmaster.orchestrator.core.retraining.rules.request_check import made_by, template_in
from trainmaster.orchestrator.core.retraining.rules.rule import Rule
from trainmaster.orchestrator.core.retraining.state import Firing


def request_of_firing(rule: Rule, firing: Firing, template: bytes | None) -> bytes | Refused:
    """The filled request as JSON, as `request_in` reads it; the same firing gives the same bytes.

    `template` is the object of `rule.request_uri` as it is now; None where the request is inline, or where the
    object is gone, which is a refusal. A template may have changed since the rule was checked, so what comes
    of it is held against everything again when the run is launched.
    """
    document: object = rule.request
    if rule.request_uri is not None:
        if template is None:
            return _refused(f"{rule.request_uri} is gone", "put it back, or drop the rule again")
        read = template_in(rule.request_uri, template)
        if isinstance(read, Refused) or read.faults or not isinstance(read.value, dict):
            return Refused(faults=read.faults)
        document = read.value
        if made_by(read.value) != rule.makes:
            return _refused(
                f"{rule.request_uri} names another model, output or champion than when the rule was checked",
                "drop the rule again, so that it is checked for loops with the new one",
            )
    missing = unfilled(places_in(document), firing.values)
    if missing is not None:
        return _refused(missing.reason, "")
    return json.dumps(filled(document, firing.values)).encode()


def _refused(problem: str, repair: str) -> Refused:
    return Refused(faults=(Fault(path="$", problem=problem, repair=repair),))
