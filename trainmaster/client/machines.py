"""The machines of the shipped policy, from which `gpu` chooses where no deployment's policy is at hand."""

from typing import Any

from trainmaster.orchestrator.core.documents.codec import decoded
from trainmaster.orchestrator.core.documents.document import parse_document
from trainmaster.orchestrator.core.policy.policy import Machines
from trainmaster.resources import ROOT


def shipped_machines() -> tuple[Machines, ...]:
    """The rows of `machines` in functions/policy.yaml."""
    # Any: the policy's schema, which the shipped file meets, guarantees the types.
    policy: Any = parse_document((ROOT / "functions" / "policy.yaml").read_bytes(), as_json=False).value
    return tuple(decoded(Machines, row) for row in policy["machines"])
