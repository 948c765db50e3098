"""Values that a command line sets in a request: `--set cluster.chief.machine=n1-standard-8`."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from trainmaster.client.errors import Refused
from trainmaster.orchestrator.core.documents.document import Document, parse_document

FORM = "KEY=VALUE, for example cluster.chief.machine=n1-standard-8"


def with_overrides(read: Document, texts: Iterable[str]) -> Document:
    """The document with each value set; `KEY` is a path of keys and list indexes, and VALUE is YAML.

    Keys that are missing on the way are added as mappings. Nothing is checked but the form.

    Raises:
        Refused: a text has another form, its value is not YAML, or its path leads through something else than a mapping
            or an entry of a list.
    """
    value = read.value
    for text in texts:
        path, equals, written = text.partition("=")
        found = parse_document(written.encode(), as_json=False)
        if not (equals and path.strip()) or (found.faults and written.strip()):
            raise Refused(f"--set: expected {FORM}, found {text!r}")
        value = _with(value, path.strip().split("."), found.value if written.strip() else "", text)
    return replace(read, value=value)


def _with(value: object, keys: list[str], new: object, text: str) -> Any:  # Any: a JSON document
    if not keys:
        return new
    key, *rest = keys
    if isinstance(value, list) and key.isdecimal() and int(key) < len(value):
        return [_with(each, rest, new, text) if at == int(key) else each for at, each in enumerate(value)]
    if value is None or isinstance(value, dict):
        present = value or {}
        return {**present, key: _with(present.get(key), rest, new, text)}
    raise Refused(f"--set {text}: {key!r} cannot be set in {value!r:.80}; expected {FORM}")
