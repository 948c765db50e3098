"""A request's fallbacks: each laid over the request as it is written, which makes a whole request again."""

from collections.abc import Iterator, Mapping
from typing import Any

from trainmaster.orchestrator.core.documents.faults import Fault, json_path
from trainmaster.orchestrator.core.documents.unvalidated import list_at, mapping_at, text_at
from trainmaster.orchestrator.core.requests.draft import ROLES

FALLBACKS = "fallbacks"
MAX_FALLBACKS = 8
"""As schemas/training_request.v1.schema.json says; no more are checked."""
_REGIONAL = ("encryption_key", "tensorboard", "experiment")
"""Keys that name a resource of one region, which jobs of another cannot use:
https://cloud.google.com/vertex-ai/docs/general/cmek, …/vertex-ai/docs/experiments/tensorboard-training"""


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


def fallback_faults(document: Mapping[str, Any], home: str) -> list[Fault]:
    """Every fallback that asks for nothing new, for a role that is not there, or for a region that the rest binds.

    The document is in our own way and may be faulty; `home` is where it runs where it does not say. What schema and
    policy say of the requests that fallbacks make is not repeated here.
    """
    return [*_roles(document), *_repeated(document, home), *_bound(document, home)]


def _roles(document: Mapping[str, Any]) -> Iterator[Fault]:
    there = [role for role in ROLES if role in mapping_at(document, "cluster")]
    for index, patch in fallbacks_in(document):
        for role in ROLES:
            if role in mapping_at(patch, "cluster") and role not in there:
                yield Fault(
                    at=(FALLBACKS, index, "cluster", role),
                    problem="a fallback changes roles of the request; it adds none",
                    value=role,
                    among=there,
                )


def _repeated(document: Mapping[str, Any], home: str) -> Iterator[Fault]:
    own = without_fallbacks(document)
    earlier = [(_asked(own, home), "the request itself")]
    for index, patch in fallbacks_in(document):
        asked = _asked(merged(own, patch), home)
        same = next((what for known, what in earlier if known == asked), None)
        if same is not None:
            yield Fault(
                path=fallback_path(index),
                problem=f"it asks for the same as {same}, so nothing is gained by trying it",
                value=patch,
                repair="leave it out, or name another region, machine or accelerator, or other scheduling",
            )
        earlier.append((asked, f"fallbacks[{index}]"))


def _asked(document: object, home: str) -> object:
    """What decides where and on what the job runs; what is false is as good as left out."""
    scheduling = {
        key: value for key, value in mapping_at(document, "scheduling").items() if value is not False
    }
    return text_at(document, "region") or home, mapping_at(document, "cluster"), scheduling


def _bound(document: Mapping[str, Any], home: str) -> Iterator[Fault]:
    own = text_at(document, "region") or home
    for number, candidate in enumerate(candidate_documents(document)):
        region = text_at(candidate, "region") or home
        if number > 0 and region == own:
            continue
        for key in _REGIONAL:
            where = _location(text_at(candidate, key))
            # Where the region stands; the key, of a request that leaves its region out.
            of_request = ("region",) if "region" in document else (key,)
            if where is not None and where != region:
                yield Fault(
                    at=(FALLBACKS, number - 1, "region") if number > 0 else of_request,
                    problem=f"the request's {key} is of {where}, and jobs of another region cannot use it",
                    value=region,
                    allowed=where,
                    repair=f"leave {key} out, or run it in {where}",
                )


def _location(name: str | None) -> str | None:
    parts = (name or "").split("/")
    return parts[3] if len(parts) > 4 and parts[2] == "locations" else None  # noqa: PLR2004 - projects/P/locations/L/…
