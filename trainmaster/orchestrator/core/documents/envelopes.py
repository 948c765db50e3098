"""Envelopes in which other programs send a document, by name.

None is opened: its ids and attributes would be lost, and they decide whether the same document starts a second run.
"""

import re
from collections.abc import Mapping

from trainmaster.orchestrator.core.documents.faults import Fault

_BY_CONTENT: Mapping[str, re.Pattern[bytes]] = {
    "gzip": re.compile(rb"\x1f\x8b"),
    "Avro": re.compile(rb"Obj\x01|\xc3\x01"),
    "base64": re.compile(rb"\s*(ey[AIJ]|ew|H4sI)[A-Za-z0-9+/_-]{12,}={0,2}\s*\Z"),
    "several JSON lines": re.compile(rb"\s*\{.*\}[ \t]*\r?\n\s*\{"),
}
"""In base64, JSON and gzip begin with these letters."""
_BY_KEYS: Mapping[str, frozenset[str]] = {
    "the body of a Pub/Sub push": frozenset({"message", "subscription"}),
    "a pulled Pub/Sub message": frozenset({"message", "ackId"}),
    "the body of a call to publish": frozenset({"messages"}),
    "a Pub/Sub message": frozenset({"data", "messageId"}),
    "a CloudEvent in structured mode": frozenset({"specversion", "type", "source"}),
    "a notification of Cloud Storage": frozenset({"kind", "bucket", "generation"}),
}
ENVELOPE_KEYS = frozenset().union(*_BY_KEYS.values())


def envelope_fault(content: bytes, value: object, what: str) -> Fault | None:
    """The fault of a document, read as `value`, that is in an envelope; `what` names it: a request or a rule."""
    keys = value.keys() if isinstance(value, Mapping) else frozenset()
    names = [name for name, pattern in _BY_CONTENT.items() if pattern.match(content)]
    names += [name for name, needed in _BY_KEYS.items() if needed <= keys]
    repair = f"send the text of the {what} as it would be in a file: Pub/Sub's clients encode it, and nothing here unpacks it"
    problem = f"this is {names[0]}, not the {what} itself" if names else ""
    return Fault(path="$", problem=problem, repair=repair) if names else None
