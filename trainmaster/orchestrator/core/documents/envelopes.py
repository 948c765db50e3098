"""Envelopes in which other programs send a document, each with its name and what to send instead.

None is opened: its attributes and ids would be lost, and they decide whether the same document starts a second run.
"""

import re
from collections.abc import Mapping

from trainmaster.orchestrator.core.documents.faults import Fault

_FROM_BASE64 = "decoded from base64"
_BY_CONTENT = (
    (re.compile(rb"\x1f\x8b"), "compressed with gzip", "send it uncompressed"),
    (
        re.compile(rb"Obj\x01|\xc3\x01"),
        "in Avro's encoding",
        "send JSON; a topic's schema may have the encoding JSON",
    ),
    (
        re.compile(rb"\s*(ey[AIJ]|ew|H4sI)[A-Za-z0-9+/_-]{12,}={0,2}\s*\Z"),
        "in base64",
        "send it decoded: Pub/Sub's clients encode the data themselves",
    ),
    (re.compile(rb"\s*\{.*\}[ \t]*\r?\n\s*\{"), "several JSON lines", "send each line by itself"),
)
_BY_KEYS = (
    (
        {"message", "subscription"},
        "the body of a Pub/Sub push",
        f"send what message.data holds, {_FROM_BASE64}",
    ),
    ({"message", "ackId"}, "a pulled Pub/Sub message", f"send what message.data holds, {_FROM_BASE64}"),
    ({"messages"}, "the body of a call to publish", f"publish what the data of each holds, {_FROM_BASE64}"),
    ({"data", "messageId"}, "a Pub/Sub message", f"send what data holds, {_FROM_BASE64}"),
    ({"specversion", "type", "source"}, "a CloudEvent in structured mode", "send what its data holds"),
    (
        {"kind", "bucket", "generation"},
        "a notification of Cloud Storage",
        "drop the object itself under requests/",
    ),
)


def envelope_fault(content: bytes, value: object, what: str) -> Fault | None:
    """The fault of a document, read as `value`, that is in an envelope; `what` names it: a request or a rule."""
    keys = value.keys() if isinstance(value, Mapping) else frozenset()
    rows = (
        *((name, repair) for pattern, name, repair in _BY_CONTENT if pattern.match(content)),
        *((name, repair) for needed, name, repair in _BY_KEYS if needed <= keys),
    )
    found = (
        Fault(path="$", problem=f"this is {name}, not the {what} itself", repair=repair)
        for name, repair in rows
    )
    return next(found, None)
