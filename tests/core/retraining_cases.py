"""Rules, states and arrivals for the tests of retraining."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import yaml

from tests.core.shipped import REQUEST_RULES, schema
from tests.narrowing import instance_of
from trainmaster.orchestrator.core.documents.faults import Fault, Refused
from trainmaster.orchestrator.core.names import Buckets
from trainmaster.orchestrator.core.retraining.arrivals import ArrivedObject, Batch
from trainmaster.orchestrator.core.retraining.book import Book
from trainmaster.orchestrator.core.retraining.reading import RULE_SCHEMA, parse_rule
from trainmaster.orchestrator.core.retraining.request_check import RuleRequirements
from trainmaster.orchestrator.core.retraining.rule import ChampionFacts, Rule
from trainmaster.orchestrator.core.retraining.state import RuleState, state_for

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
SECOND, MINUTE, HOUR, DAY = (timedelta(seconds=count) for count in (1, 60, 3600, 86400))
BUCKETS = Buckets(inbox="inbox", ledger="ledger", models="models", champions="champions")
RULE_REQUIREMENTS = RuleRequirements(
    requests=replace(REQUEST_RULES, schemas={**REQUEST_RULES.schemas, RULE_SCHEMA: schema(RULE_SCHEMA)}),
    buckets=BUCKETS,
)
IMAGE = "us-central1-docker.pkg.dev/my-project/trainmaster/trainer"
REQUEST = {
    "model_name": "cassava",
    "image": f"{IMAGE}:latest",
    "cluster": {"chief": {"machine": "n1-standard-8"}},
}
CHAMPION = ChampionFacts(
    run_id="cassava-0", model_uri="gs://models/cassava/cassava-0/model/", value=0.9, since=NOON
)


def dropped(
    document: Any,
    *,
    name: str = "rules/watch.yaml",
    generation: int = 1,
    book: Book | None = None,
    template: bytes | None = None,
) -> Rule | Refused:
    """What comes of a rule's file with this content: text as it is, values as YAML."""
    text = document if isinstance(document, str) else yaml.safe_dump(document, sort_keys=False)
    return parse_rule(
        text.encode(),
        dropped_name=name,
        generation=generation,
        requirements=RULE_REQUIREMENTS,
        book=book or Book(),
        template=template,
    )


def document(*when: dict[str, Any], request: dict[str, Any] | None = None, **rest: Any) -> dict[str, Any]:
    return {"when": list(when), "request": {**REQUEST, **(request or {})}, **rest}


def rule(*when: dict[str, Any], name: str = "rules/watch.yaml", generation: int = 1, **rest: Any) -> Rule:
    """A sound rule with these conditions."""
    return instance_of(Rule, dropped(document(*when, **rest), name=name, generation=generation))


def faults(refused: Rule | Refused) -> dict[str, Fault]:
    """Each fault by its path."""
    assert isinstance(refused, Refused), refused
    return {fault.path: fault for fault in refused.faults}


def fresh(of: Rule, now: datetime = NOON) -> RuleState:
    return state_for(of, None, now)


def arrived(
    name: str, *, at: datetime = NOON, size_bytes: int = 10, generation: int = 1, crc32c: str = ""
) -> ArrivedObject:
    return ArrivedObject(
        bucket="data-1",
        name=name,
        generation=generation,
        size_bytes=size_bytes,
        created_at=at,
        crc32c=crc32c,
    )


def batch(name: str, arrivals: Sequence[ArrivedObject]) -> Batch:
    return Batch(name=f"arrivals/{name}", arrivals=tuple(arrivals))


def pictures(count: int, *, at: datetime = NOON) -> list[ArrivedObject]:
    return [arrived(f"cassava/{number}.jpg", at=at) for number in range(count)]
