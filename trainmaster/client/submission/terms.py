"""The terms of an examination: the names, the policy and the prices of the place that a file would be sent to."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from trainmaster.client.clients import Clients
from trainmaster.client.context import TEAM_VARIABLE, Context
from trainmaster.client.deployment import read_deployment
from trainmaster.client.errors import ClientRefused
from trainmaster.client.machines import shipped_machines
from trainmaster.client.submission.source import UnusableFile, read_file
from trainmaster.orchestrator.core.admission.prices import Prices, prices_from
from trainmaster.orchestrator.core.documents.document import parse_document
from trainmaster.orchestrator.core.documents.faults import Fault, listed
from trainmaster.orchestrator.core.documents.faults import Refused as RefusedRequest
from trainmaster.orchestrator.core.documents.placing import faults_with_places, lines_of_fault, position
from trainmaster.orchestrator.core.documents.validation import schema_faults
from trainmaster.orchestrator.core.names import Buckets
from trainmaster.orchestrator.core.orders.order import ORDER_SCHEMA
from trainmaster.orchestrator.core.policy.checks import policy_faults
from trainmaster.orchestrator.core.policy.policy import Policy, policy_from
from trainmaster.orchestrator.core.requests.request import REQUEST_SCHEMA, RequestRules
from trainmaster.orchestrator.core.retraining.book import Book
from trainmaster.orchestrator.core.retraining.reading import RULE_SCHEMA
from trainmaster.resources import ROOT
from trainmaster.version import VERSION

SHIPPED_POLICY = ROOT / "functions" / "policy.yaml"
MAX_POLICY_BYTES = 4 * 1024 * 1024
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
    def buckets(self) -> Buckets:
        return Buckets(
            inbox=self.context.inbox_bucket,
            ledger=self.context.ledger_bucket,
            models=self.context.models_bucket,
            champions=self.context.champions_bucket,
        )

    @property
    def team(self) -> str | None:
        """Whose requests these are; None in a deployment without teams."""
        return None if self.policy is None else self.policy.team


def deployed_terms(clients: Clients) -> Terms:
    """Those that the context's deployment publishes.

    Raises:
        NotFound, ClientRefused: as `deployed_policy`; or the policy has teams, and the context names none of them.
        google.api_core.exceptions.GoogleAPICallError: the ledger cannot be read.
    """
    policy, prices, version = deployed_policy(clients)
    rules, source = rules_for(clients.context, policy), f"as deployed, version {version}"
    return Terms(context=clients.context, rules=rules, prices=prices, source=source)


def deployed_policy(clients: Clients) -> tuple[Policy, Prices, str]:
    """The policy, of all teams, the prices and the version of the context's deployment.

    Raises:
        NotFound: it publishes none: an older version made it, or none is there.
        ClientRefused: this version cannot read them, and the message has every fault.
        google.api_core.exceptions.GoogleAPICallError: the ledger cannot be read.
    """
    deployment = read_deployment(clients)
    _refuse(schema_faults(schema("policy.v1"), deployment.policy), "policy")
    _refuse(schema_faults(schema("prices.v1"), deployment.prices), "price table")
    try:
        policy = policy_from(deployment.policy, names_of(clients.context))
    except ValueError as error:
        raise ClientRefused(f"The deployed policy: {error}") from error
    return policy, prices_from(deployment.prices), deployment.version


def terms_with_policy(context: Context, file: Path | None = None) -> Terms:
    """Those of the policy in a file, by default the shipped one, at the shipped prices. No service is asked.

    Raises:
        UnusableFile: the file cannot be read, or is not a valid policy.
        ClientRefused: the policy has teams, and the context names none of them.
    """
    rules = rules_for(context, read_policy(file or SHIPPED_POLICY, context))
    return Terms(context=context, rules=rules, prices=shipped_prices(), source=str(file) if file else SHIPPED)


def terms_without_policy(context: Context) -> Terms:
    """Those of the schema and the services alone: no deployment's policy."""
    return Terms(context=context, rules=rules_for(context, None), prices=shipped_prices(), source="none")


def _refuse(faults: Iterable[Fault], what: str) -> None:
    lines = [f"The deployed {what} has another version: {fault}" for fault in faults]
    if lines:
        raise ClientRefused(
            "\n".join([*lines, f"This is version {VERSION}; deploy it, or use the deployed one."])
        )


def read_policy(path: Path, context: Context) -> Policy:
    """The policy in the file, as the deployment of the context would use it.

    Raises:
        UnusableFile: it cannot be read, or is not a valid policy.
    """
    content = read_file(str(path), MAX_POLICY_BYTES)
    if len(content) > MAX_POLICY_BYTES:
        raise UnusableFile(f"{path}: larger than {MAX_POLICY_BYTES} bytes, too large for a policy")
    read = parse_document(content, as_json=False, what="policy")
    refused = [*read.faults, *schema_faults(schema("policy.v1"), read.value, read.spelled)]
    faults = [*refused, *policy_faults(read.value, names_of(context), refused)]
    if faults:
        in_order = sorted(faults_with_places(faults, read), key=position)
        lines = (lines_of_fault(fault, str(path)) for fault in in_order)
        raise UnusableFile("\n".join(line for fault in lines for line in fault))
    return policy_from(read.value, names_of(context))


def names_of(context: Context) -> dict[str, str]:
    """What `${project}` and the like stand for in this context."""
    return {
        "project": context.project,
        "region": context.region,
        "inbox_bucket": context.inbox_bucket,
        "models_bucket": context.models_bucket,
        "prefix": context.prefix,
    }


def rules_for(context: Context, policy: Policy | None) -> RequestRules:
    """What the context's deployment checks requests, rules and orders of the context's team against.

    With this policy; None: with none.

    Raises:
        ClientRefused: the policy has teams, and the context names none of them.
    """
    rules = RequestRules(
        schemas={each: schema(each) for each in (REQUEST_SCHEMA, RULE_SCHEMA, ORDER_SCHEMA)},
        policy=policy,
        region=context.region,
        today=datetime.now(UTC).date(),
        names=names_of(context),
        without_policy=shipped_machines() if policy is None else (),
    )
    teams = () if policy is None else tuple(policy.teams)
    team = context.team if len(teams) != 1 else context.team or teams[0]
    of_team = rules.of_team(team if teams else None)
    if isinstance(of_team, RefusedRequest):
        found = (
            f"no team is called {team!r}" if team else f"neither --team nor {TEAM_VARIABLE} names your team"
        )
        raise ClientRefused(
            f"{found}; this deployment's teams: {listed(teams)}. "
            f"Choose yours: --team {teams[0]}, or export {TEAM_VARIABLE}={teams[0]}"
        )
    return of_team


def shipped_prices() -> Prices:
    """The price table as it is shipped."""
    # Any: the price table's schema, which the shipped file meets, guarantees the types.
    document: Any = parse_document((ROOT / "functions" / "prices.yaml").read_bytes(), as_json=False).value
    return prices_from(document)


def schema(schema_id: str) -> Mapping[str, Any]:
    """The JSON Schema with this id, as it is shipped."""
    found: dict[str, Any] = json.loads((ROOT / "schemas" / f"{schema_id}.schema.json").read_bytes())
    return found
