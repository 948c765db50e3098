"""What the context's deployment checks requests against."""

from typing import TYPE_CHECKING

from trainmaster.client.deployment import read_deployment
from trainmaster.client.errors import NotFound, Refused
from trainmaster.client.request_files import SHIPPED_POLICY, names_of, read_policy, rules_for
from trainmaster.orchestrator.core.policy.policy import Policy, policy_from
from trainmaster.orchestrator.core.requests.request import RequestRules

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients


def deployed_rules(clients: "Clients") -> RequestRules:
    """The policy that the deployment publishes, this version's schemas, and the context's region.

    A deployment that publishes none is checked by the shipped policy.

    Raises:
        Refused: the policy is one that this version cannot read.
        google.api_core.exceptions.GoogleAPICallError: the ledger cannot be read.
    """
    return rules_for(clients.context, _policy(clients))


def _policy(clients: "Clients") -> Policy:
    try:
        document = read_deployment(clients).policy
    except NotFound:
        return read_policy(SHIPPED_POLICY, clients.context)
    try:
        return policy_from(document, names_of(clients.context))
    except ValueError as fault:
        raise Refused(
            f"This version cannot read the deployment's policy: {fault}. Use the deployment's."
        ) from fault
