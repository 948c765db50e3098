"""What a file is examined against: the names, the policy and the prices of the place that it would be sent to."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from trainmaster.client.context import Context
from trainmaster.client.deployment import prices_of, read_deployment, rules_of
from trainmaster.client.errors import NotFound
from trainmaster.client.request_files import SHIPPED_POLICY, read_policy, rules_for, shipped_prices
from trainmaster.orchestrator.core.admission.prices import Prices
from trainmaster.orchestrator.core.policy.policy import Policy
from trainmaster.orchestrator.core.requests.request import RequestRules
from trainmaster.orchestrator.core.retraining.book import Book

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients

SHIPPED = "the policy and prices that this version ships"


@dataclass(frozen=True, kw_only=True)
class Terms:
    """What requests, rules and orders must meet in a context.

    Attributes:
        context: the place.
        rules: the schemas and the policy.
        prices: for the cost caps.
        source: where the policy comes from, in words.
        book: the retraining rules that are in force; empty where the ledger is not read.
        read_template: returns the request that a rule names by its URI, or None if it does not exist; None where the
            buckets are not read.
    """

    context: Context
    rules: RequestRules
    prices: Prices
    source: str
    book: Book = field(default_factory=Book)
    read_template: Callable[[str], bytes | None] | None = None

    @property
    def policy(self) -> Policy | None:
        return self.rules.policy

    @property
    def team(self) -> str | None:
        """Whose requests these are; None in a deployment without teams."""
        return None if self.policy is None else self.policy.team


def deployed_terms(clients: "Clients") -> Terms:
    """Those that the context's deployment publishes; for one that publishes none, the shipped ones.

    Raises:
        Refused: this version cannot read them.
        google.api_core.exceptions.GoogleAPICallError: the ledger cannot be read.
    """
    context = clients.context
    try:
        deployment = read_deployment(clients)
    except NotFound:
        return terms_with_policy(context)
    source = f"as deployed, version {deployment.version}"
    return Terms(
        context=context, rules=rules_of(deployment, context), prices=prices_of(deployment), source=source
    )


def terms_with_policy(context: Context, file: Path | None = None) -> Terms:
    """Those of the policy in a file, by default the shipped one, at the shipped prices. No service is asked.

    Raises:
        UnusableFile: the file cannot be read, or is not a valid policy.
        Refused: the policy has teams, and the context names none of them.
    """
    rules = rules_for(context, read_policy(file or SHIPPED_POLICY, context))
    return Terms(context=context, rules=rules, prices=shipped_prices(), source=str(file) if file else SHIPPED)


def terms_without_policy(context: Context) -> Terms:
    """Those of the schema and the services alone: no deployment's policy."""
    return Terms(context=context, rules=rules_for(context, None), prices=shipped_prices(), source="none")
