"""The names of rules and of the objects that retraining keeps in the ledger bucket."""

import re
from datetime import UTC, datetime

from trainmaster.orchestrator.core.names import RULES_PREFIX

BOOK_OBJECT = "rules/book.json"
STATES_PREFIX = "rule-state/"
ARRIVALS_PREFIX = "arrivals/"

_MODEL_NAME = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_RULE_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


def rule_id_of(object_name: str) -> str | None:
    """`rules/vision/Cassava.yaml` -> `vision.cassava`; None where that gives no rule id.

    An id has lower-case letters, digits, '.', '_' and '-', at most 63 in all.
    """
    path = object_name.removeprefix(RULES_PREFIX).rpartition(".")[0]
    rule_id = path.replace("/", ".").lower()
    return rule_id if is_rule_id(rule_id) else None


def is_rule_id(text: str) -> bool:
    return _RULE_ID.fullmatch(text) is not None


def is_model_name(text: str) -> bool:
    return _MODEL_NAME.fullmatch(text) is not None


def state_object(rule_id: str) -> str:
    return f"{STATES_PREFIX}{rule_id}.json"


def batch_object(at: datetime, instance: str, number: int) -> str:
    """`arrivals/<time>-<instance>-<number>`: sorts by time, and no two writers make the same one.

    Args:
        at: when the batch was closed.
        instance: hexadecimal text that no other process has.
        number: counts the batches of that process.
    """
    return f"{ARRIVALS_PREFIX}{at.astimezone(UTC):%Y%m%dt%H%M%S%f}-{instance}-{number}"
