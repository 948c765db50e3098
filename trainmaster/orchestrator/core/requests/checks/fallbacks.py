"""Where fallbacks make no sense, beyond what schema and policy say of the requests that they make."""

from collections.abc import Iterator, Mapping
from typing import Any

from trainmaster.orchestrator.core.documents.faults import Fault, fault_at, listed, shown
from trainmaster.orchestrator.core.documents.unvalidated import Path, mapping_at, text_at
from trainmaster.orchestrator.core.requests.fallbacks import (
    FALLBACKS,
    candidate_documents,
    fallback_path,
    fallbacks_in,
    merged,
    without_fallbacks,
)
from trainmaster.orchestrator.core.requests.programs import ROLES

_REGIONAL = ("encryption_key", "tensorboard", "experiment")
"""Keys that name a resource of one region, which jobs of another cannot use:
https://cloud.google.com/vertex-ai/docs/general/cmek, …/vertex-ai/docs/experiments/tensorboard-training"""


def fallback_faults(document: Mapping[str, Any], home: str) -> list[Fault]:
    """Every fallback that asks for nothing new, for a role that is not there, or for a region that the rest binds.

    The document is in our own way and may be faulty; `home` is where it runs where it does not say.
    """
    return [*_roles(document), *_repeated(document, home), *_bound(document, home)]


def _roles(document: Mapping[str, Any]) -> Iterator[Fault]:
    there = [role for role in ROLES if role in mapping_at(document, "cluster")]
    for index, patch in fallbacks_in(document):
        for role in ROLES:
            if role in mapping_at(patch, "cluster") and role not in there:
                yield fault_at(
                    (FALLBACKS, index, "cluster", role),
                    "a fallback changes roles of the request; it adds none",
                    found=role,
                    allowed=listed(there),
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
                found=shown(patch),
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
            if where is not None and where != region:
                yield fault_at(
                    _place(document, number, key),
                    f"the request's {key} is of {where}, and jobs of another region cannot use it",
                    found=region,
                    allowed=where,
                    repair=f"leave {key} out, or run it in {where}",
                )


def _place(document: Mapping[str, Any], number: int, key: str) -> Path:
    """Where the region stands; the key, of a request that leaves its region out."""
    if number > 0:
        return (FALLBACKS, number - 1, "region")
    return ("region",) if "region" in document else (key,)


def _location(name: str | None) -> str | None:
    parts = (name or "").split("/")
    return parts[3] if len(parts) > 4 and parts[2] == "locations" else None  # noqa: PLR2004 - projects/P/locations/L/…
