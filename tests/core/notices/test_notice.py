"""Every type of notice is in the schema, with its payload, and is written down once."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

from trainmaster.orchestrator.core.documents.codec import decoded
from trainmaster.orchestrator.core.notices.message import message_of
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
    Notice,
    ReceiverPayload,
    RulePayload,
    RunPayload,
)
from trainmaster.orchestrator.core.runs.record import RunRecord

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


@pytest.mark.parametrize(
    ("scores", "shown"),
    [
        (
            {"challenger": {"accuracy": 0.8}, "champion": {"accuracy": 0.7}},
            ", accuracy 0.8 (champion 0.7), cost",
        ),
        ({"challenger": {"accuracy": 0.8}}, ", accuracy 0.8, cost"),
        (None, "is the new champion, cost"),
    ],
)
def test_the_message_has_the_numbers_that_another_account_measured_and_not_those_that_the_run_claims(
    scores: dict[str, dict[str, float]] | None, shown: str
) -> None:
    document = json.loads((ROOT / "schemas/examples/valid/run_record.v2.evaluated.json").read_text())
    document["completion"]["evaluation"]["scores"] = scores
    record = decoded(RunRecord, document)
    promoted = Notice(
        id="1", type=CHAMPION_PROMOTED, subject="m", time=record.updated_at, data={"run_id": record.run_id}
    )
    assert shown in message_of(promoted, record, record).text


def test_a_type_is_written_in_the_room_of_notices_alone() -> None:
    literal = re.compile(r"""["']trainmaster\.(run|champion|rule|cap|notice)\.""")
    product = [*(ROOT / "trainmaster").rglob("*.py"), *(ROOT / "functions").rglob("*.py")]
    assert [path.name for path in product if literal.search(path.read_text())] == ["notice.py"]
