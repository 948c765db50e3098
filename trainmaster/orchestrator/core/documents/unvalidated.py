"""Reads an unvalidated document: a value of another type than expected counts as absent.

The schema's check reports it as a fault.
"""

from collections.abc import Mapping, Sequence

from trainmaster.orchestrator.core.documents.faults import PathPart

Path = tuple[PathPart, ...]


def at(document: object, *path: str) -> object:
    """The value at the path, or None."""
    for part in path:
        if not isinstance(document, Mapping):
            return None
        document = document.get(part)
    return document


def text_at(document: object, *path: str) -> str | None:
    value = at(document, *path)
    return value if isinstance(value, str) else None


def whole_at(document: object, *path: str) -> int | None:
    """The integer at the path; booleans do not count."""
    value = at(document, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def is_true(document: object, *path: str) -> bool:
    return at(document, *path) is True


def mapping_at(document: object, *path: str) -> Mapping[str, object]:
    value = at(document, *path)
    return value if isinstance(value, Mapping) else {}


def list_at(document: object, *path: str) -> Sequence[object]:
    value = at(document, *path)
    return value if isinstance(value, list) else ()
