"""The request of one firing: the rule's own, or its template's, with its places filled."""

from orchestrator.core.launch.request import Refused
from orchestrator.core.retrain.rule import Rule
from orchestrator.core.retrain.state import Firing


def request_of_firing(rule: Rule, firing: Firing, template: bytes | None) -> bytes | Refused:
    """The filled request as JSON, as `request_in` reads it; the same firing gives the same bytes.

    Args:
        template: the object of `rule.request_uri` as it is now; None where the request is inline or the
            object is gone, which is a refusal.
    """
    raise NotImplementedError
