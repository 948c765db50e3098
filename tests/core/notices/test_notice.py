"""Every type of notice is in the schema, with its payload, and is written down once."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

from trainmaster.orchestrator.core.notices.notice import (
    APPROVAL_NEEDED,
    CAP_REACHED,
    CHAMPION_PROMOTED,
    CHAMPION_ROLLED_BACK,
    RULE_QUARANTINED,
    RUN_RETRIED,
    RUN_TYPES,
    RUN_WASTEFUL,
    TEST,
    CapPayload,
    ChampionPayload,
    ReceiverPayload,
    RulePayload,
    RunPayload,
)

ROOT = Path(__file__).resolve().parents[3]
SCHEMA = json.loads((ROOT / "schemas" / "notice.v1.schema.json").read_text())


def test_the_schema_has_exactly_these_types() -> None:
    others = (
        *(CHAMPION_PROMOTED, CHAMPION_ROLLED_BACK, APPROVAL_NEEDED, RULE_QUARANTINED, CAP_REACHED),
        *(RUN_RETRIED, RUN_WASTEFUL, TEST),
    )
    assert sorted(SCHEMA["properties"]["type"]["enum"]) == sorted([*RUN_TYPES.values(), *others])


@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("run", RunPayload),
        ("champion", ChampionPayload),
        ("rule", RulePayload),
        ("cap", CapPayload),
        ("test", ReceiverPayload),
    ],
)
def test_a_payload_has_the_fields_of_the_schema(name: str, payload: Any) -> None:
    fields = dataclasses.fields(payload)
    assert {field.name for field in fields} == set(SCHEMA["$defs"][name]["properties"])
    required = {field.name for field in fields if field.default is dataclasses.MISSING}
    assert required == set(SCHEMA["$defs"][name]["required"])


def test_a_type_is_written_in_the_room_of_notices_alone() -> None:
    literal = re.compile(r"""["']trainmaster\.(run|champion|rule|cap|notice)\.""")
    product = [*(ROOT / "trainmaster").rglob("*.py"), *(ROOT / "functions").rglob("*.py")]
    assert [path.name for path in product if literal.search(path.read_text())] == ["notice.py"]
