"""The request rules and schemas as they are shipped, for one project and region."""

import json
from datetime import date
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from trainmaster.orchestrator.core.documents.document import parse_document
from trainmaster.orchestrator.core.policy.policy import policy_from
from trainmaster.orchestrator.core.requests.request import RequestRules

ROOT = Path(__file__).resolve().parents[2]


def schema(schema_id: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((ROOT / "schemas" / f"{schema_id}.schema.json").read_text())
    return document


def assert_valid(document: object, schema_id: str) -> None:
    """The document meets the shipped schema with this id."""
    Draft202012Validator(schema(schema_id)).validate(document)


def policy_document() -> dict[str, Any]:
    read = parse_document((ROOT / "functions" / "policy.yaml").read_bytes(), as_json=False)
    assert isinstance(read.value, dict)
    return read.value


def deployed_policy_document() -> dict[str, Any]:
    """The shipped policy after the platform engineer's first edit: it names networks and what is reserved."""
    named = {
        "networks": ["projects/*/global/networks/*"],
        "network_attachments": ["**"],
        "reservations": ["**"],
    }
    return {**policy_document(), **named}


NAMES = {"project": "my-project", "region": "us-central1", "inbox_bucket": "inbox", "models_bucket": "models"}
REQUEST_RULES = RequestRules(
    schemas={"training_request.v1": schema("training_request.v1")},
    policy=policy_from(deployed_policy_document(), NAMES),
    region="us-central1",
    today=date(2026, 3, 1),
    names=NAMES,
)
