"""The kinds of file that users send, recognized by their content, and the command that takes each."""

import shlex
from enum import StrEnum

from trainmaster.orchestrator.core.requests.incoming import is_order
from trainmaster.orchestrator.core.requests.reading import has_request_key

_RULE_KEYS = frozenset({"when", "request", "request_uri"})
_ORDER_COMMANDS = "trainmaster rules fire, champions rollback or approve, or cancel"


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


def use_of(kind: FileKind, file: str) -> str:
    """What the file is, and the command that takes it: `a training request. Submit it: trainmaster submit FILE`."""
    match kind:
        case FileKind.REQUEST:
            return f"a training request. Submit it: trainmaster submit {shlex.quote(file)}"
        case FileKind.RULE:
            return f"a retraining rule. Apply it: trainmaster rules apply {shlex.quote(file)}"
        case FileKind.ORDER:
            return f"an order. Give it with {_ORDER_COMMANDS}"
