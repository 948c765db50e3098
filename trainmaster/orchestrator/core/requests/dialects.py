"""The ways to write a request, and how each is known."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from trainmaster.orchestrator.core.documents.translation import Translated
from trainmaster.orchestrator.core.requests.vertex.dialect import custom_job, tuning_job


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """One way to write a request: the keys by which it is known, and what it says in our own way.

    Every dialect is held against the same schema and checks; its faults have the paths of the text.
    `in_own` is given the name that the model has where the document has none, if there is one.
    """

    name: str
    marks: frozenset[str]
    in_own: Callable[[Mapping[str, Any], str | None], Translated]


def _own(document: Mapping[str, Any], name: str | None) -> Translated:  # noqa: ARG001 - it has its own
    region = document.get("region")
    return Translated(document=document, region=region if isinstance(region, str) else None)


def _legacy_in_own(document: Mapping[str, Any], name: str | None) -> Translated:
    # Imported late: few requests are of this kind, and a function's start must be short.
    from trainmaster.orchestrator.core.requests.legacy.dialect import translated as legacy_translated

    return legacy_translated(document, name)


LEGACY = Dialect(
    name="ai-platform",
    marks=frozenset({"trainingInput", "training_input", "jobId", "job_id"}),
    in_own=_legacy_in_own,
)
VERTEX_TUNING = Dialect(
    name="hp-tuning-jobs",
    marks=frozenset({"studySpec", "study_spec", "trialJobSpec", "trial_job_spec"}),
    in_own=tuning_job,
)
VERTEX_CUSTOM = Dialect(
    name="custom-jobs",
    marks=frozenset({"workerPoolSpecs", "worker_pool_specs", "jobSpec", "job_spec"}),
    in_own=custom_job,
)
OWN = Dialect(name="trainmaster", marks=frozenset(), in_own=_own)
DIALECTS = (LEGACY, VERTEX_TUNING, VERTEX_CUSTOM, OWN)
"""Asked in this order; our own comes last and takes whatever no other knows as its own."""


def dialect_of(document: Mapping[str, Any]) -> Dialect:
    """The first dialect that has a mark in the document, else our own."""
    return next((dialect for dialect in DIALECTS if not dialect.marks.isdisjoint(document)), OWN)
