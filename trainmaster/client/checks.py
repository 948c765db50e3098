"""What requests and rules are checked against before they are submitted: schemas, policy and prices."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from trainmaster.client.errors import Refused
from trainmaster.orchestrator.core.admission.cost import Prices, prices_from
from trainmaster.orchestrator.core.documents.document import parse_document
from trainmaster.orchestrator.core.documents.validation import schema_faults
from trainmaster.orchestrator.core.names import Buckets
from trainmaster.orchestrator.core.policy.policy import policy_from
from trainmaster.orchestrator.core.requests.orders import ORDER_SCHEMA
from trainmaster.orchestrator.core.requests.request import REQUEST_SCHEMA, RequestRules
from trainmaster.orchestrator.core.retraining.reading import RULE_SCHEMA
from trainmaster.resources import ROOT

if TYPE_CHECKING:
    from trainmaster.client.context import Context

T = TypeVar("T")
FILE_MAX_BYTES = 4 * 1024 * 1024
SHIPPED_POLICY = ROOT / "functions" / "policy.yaml"
SHIPPED_PRICES = ROOT / "functions" / "prices.yaml"


@dataclass(frozen=True, kw_only=True)
class Checks:
    """The rules for requests, the price table, and in words where both come from."""

    request_rules: RequestRules
    prices: Prices
    source: str


def checks_from_files(context: "Context", policy: Path | None = None, prices: Path | None = None) -> Checks:
    """The checks by these files, or by the policy and prices that this version ships.

    Raises:
        Refused: a file cannot be read, or its schema refuses it; the message has every fault.
    """
    names = {"project": context.project, "region": context.region, "models_bucket": context.models_bucket}
    rules = RequestRules(
        schemas={each: schema(each) for each in (REQUEST_SCHEMA, RULE_SCHEMA, ORDER_SCHEMA)},
        policy=_parsed(policy or SHIPPED_POLICY, "policy.v1", lambda found: policy_from(found, names)),
        region=context.region,
        today=datetime.now(UTC).date(),
    )
    return Checks(
        request_rules=rules,
        prices=_parsed(prices or SHIPPED_PRICES, "prices.v1", prices_from),
        source=str(policy) if policy else "the policy that this version ships",
    )


def buckets_of(context: "Context") -> Buckets:
    return Buckets(inbox=context.inbox_bucket, ledger=context.ledger_bucket, models=context.models_bucket)


def schema(schema_id: str) -> Mapping[str, Any]:
    """The schema, as a JSON document."""
    document: dict[str, Any] = json.loads((ROOT / "schemas" / f"{schema_id}.schema.json").read_bytes())
    return document


# Any: the schema validates the types.
def _parsed(path: Path, schema_id: str, parse: Callable[[Any], T]) -> T:
    try:
        with path.open("rb") as file:
            read = parse_document(file.read(FILE_MAX_BYTES), as_json=path.suffix == ".json")
        faults = [*read.faults, *schema_faults(schema(schema_id), read.value, read.spelled)]
        if not faults:
            return parse(read.value)
    except OSError as error:
        raise Refused(f"{path}: {error.strerror or error}") from error
    except ValueError as error:
        raise Refused(f"{path}: {error}") from error
    raise Refused("\n".join(f"{path}: {fault}" for fault in faults))
