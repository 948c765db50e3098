"""A request's fallbacks: each laid over the request as it is written, which makes a whole request again."""

from collections.abc import Iterator, Mapping
from typing import Any

from trainmaster.orchestrator.core.documents.faults import json_path
from trainmaster.orchestrator.core.documents.unvalidated import list_at

FALLBACKS = "fallbacks"
MAX_FALLBACKS = 8
"""As schemas/training_request.v1.schema.json says; no more are checked."""


def candidate_documents(document: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """The documents of the candidates, none with fallbacks of its own: the request itself, then each fallback over it."""
    own = without_fallbacks(document)
    return (own, *(merged(own, patch) for _, patch in fallbacks_in(document)))


def without_fallbacks(document: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != FALLBACKS}


def fallbacks_in(document: Mapping[str, Any]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Each fallback that is a mapping, with its place in the list."""
    for index, patch in enumerate(list_at(document, FALLBACKS)[:MAX_FALLBACKS]):
        if isinstance(patch, Mapping):
            yield index, patch


def fallback_path(index: int) -> str:
    return json_path((FALLBACKS, index))


# Any: a JSON document.
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
