"""The kinds of file that users send, recognized by their content, and the command that takes each."""

import shlex
from collections.abc import Mapping
from enum import StrEnum

from trainmaster.orchestrator.core.documents.values import text_at
from trainmaster.orchestrator.core.requests.incoming import is_order
from trainmaster.orchestrator.core.requests.reading import has_request_key

_RULE_KEYS = frozenset({"when", "request", "request_uri"})
_ORDER_COMMANDS = "trainmaster rules fire, champions rollback or cancel"


class FileKind(StrEnum):
    """What a file is, by its content."""

    REQUEST = "request"
    RULE = "rule"
    ORDER = "order"


def kind_of(document: object, expected: FileKind = FileKind.REQUEST) -> FileKind:
    """What a document is; the expected one where nothing in it says."""
    if is_order(document):
        return FileKind.ORDER
    if not isinstance(document, dict):
        return expected
    if not _RULE_KEYS.isdisjoint(document):
        return FileKind.RULE
    return FileKind.REQUEST if has_request_key(document) else expected


def use_of(kind: FileKind, file: str, document: object) -> str:
    """What the document in the file is, and the command that takes it: `an order. Give it: trainmaster cancel RUN`."""
    match kind:
        case FileKind.REQUEST:
            return f"a training request. Submit it: trainmaster submit {shlex.quote(file)}"
        case FileKind.RULE:
            return f"a retraining rule. Apply it: trainmaster rules apply {shlex.quote(file)}"
        case FileKind.ORDER:
            return f"an order. Give it: {order_command(document)}"


def order_command(order: object) -> str:
    """The command that gives the order; the three verbs if the order does not say what it is about."""
    document = order if isinstance(order, Mapping) else {}
    rule, run = text_at(document, "fire", "rule"), text_at(document, "cancel", "run")
    model, to_run = text_at(document, "rollback", "model_name"), text_at(document, "rollback", "to_run")
    words = [
        *(["rules", "fire", rule] if rule else ()),
        *(["champions", "rollback", model] if model else ()),
        *(["--to-run", to_run] if model and to_run else ()),
        *(["cancel", run] if run else ()),
    ]
    is_one = len([name for name in (rule, model, run) if name]) == 1
    return shlex.join(["trainmaster", *words]) if is_one else _ORDER_COMMANDS
