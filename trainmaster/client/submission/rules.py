"""What the context's deployment checks requests against."""

from typing import TYPE_CHECKING

from trainmaster.client.deployment import read_deployment, rules_of
from trainmaster.client.errors import NotFound
from trainmaster.client.request_files import SHIPPED_POLICY, read_policy, rules_for
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
    try:
        return rules_of(read_deployment(clients), clients.context)
    except NotFound:
        return rules_for(clients.context, read_policy(SHIPPED_POLICY, clients.context))
