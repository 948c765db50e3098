"""A request's fallbacks: each laid over the request as it is written, which makes a whole request again."""

from collections.abc import Mapping
from typing import Any

FALLBACKS = "fallbacks"
MAX_FALLBACKS = 8


def rung_documents(document: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """The documents of the rungs, none with fallbacks of its own: the request itself, then each fallback over it."""
    own = {key: value for key, value in document.items() if key != FALLBACKS}
    return (own, *(merged(own, patch) for patch in document.get(FALLBACKS, ())))


def merged(document: object, patch: object) -> Any:
    """The patch laid over the document: null takes a key away, mappings are merged, all else is replaced.

    Source: JSON Merge Patch, https://www.rfc-editor.org/rfc/rfc7396#section-2
    """
    if not isinstance(patch, Mapping):
        return patch
    result = dict(document) if isinstance(document, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result
