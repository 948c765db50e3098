"""What the context's deployment checks requests against."""

from typing import TYPE_CHECKING

from trainmaster.client.deployment import prices_of, read_deployment, rules_of
from trainmaster.client.errors import NotFound
from trainmaster.client.request_files import SHIPPED_POLICY, read_policy, rules_for, shipped_prices
from trainmaster.orchestrator.core.admission.prices import Prices
from trainmaster.orchestrator.core.requests.request import RequestRules

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients


def deployed_rules(clients: "Clients") -> tuple[RequestRules, Prices]:
    """The rules and prices that the deployment publishes; for one that publishes none, those that are shipped.

    Raises:
        Refused: this version cannot read them.
        google.api_core.exceptions.GoogleAPICallError: the ledger cannot be read.
    """
    try:
        deployment = read_deployment(clients)
    except NotFound:
        return rules_for(clients.context, read_policy(SHIPPED_POLICY, clients.context)), shipped_prices()
    return rules_of(deployment, clients.context), prices_of(deployment)
