"""The ways to write a request, and how each is recognized."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from trainmaster.orchestrator.core.requests.translation.own_document import Translated
from trainmaster.orchestrator.core.requests.vertex.dialect import custom_job, tuning_job

MARK_MAX_CHARS, KEYS_MAX = 40, 40
MARK_LIKENESS = 0.85
"""How similar a key must be to a dialect's mark; no key of the project's dialect is."""
OWN_KEYS = frozenset({"model_name", "image", "python_package", "script", "cluster"})
"""A document with any of them is in our own dialect, whatever else it has."""


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """One way to write a request: the keys that identify it, and its translation to the project's dialect.

    Every dialect is checked against the same schema and rules; its faults have the paths of the user's text.
    `in_own` receives the model's name for a document that has none, if there is one.
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
"""Tried in this order; the project's dialect comes last and takes every other document."""


def is_rule(document: Mapping[str, Any]) -> bool:
    """Whether a document that should be a request is a retraining rule, which has its own folder."""
    return "when" in document and not has_request_key(document)


def has_request_key(document: Mapping[str, Any]) -> bool:
    """Whether the document has a key that identifies a request, in any dialect."""
    return not OWN_KEYS.union(*(dialect.marks for dialect in DIALECTS)).isdisjoint(document)


def dialect_of(document: Mapping[str, Any]) -> Dialect:
    """The first dialect that has a mark in the document, a misspelt one if need be, else our own."""
    marked = (dialect for dialect in DIALECTS if not dialect.marks.isdisjoint(document))
    return next(marked, None) or _misspelt_dialect(document) or OWN


def _misspelt_dialect(document: Mapping[str, Any]) -> Dialect | None:
    """The dialect of `workerPoolSpec`, which then refuses that key and names the right one."""
    if not OWN_KEYS.isdisjoint(document):
        return None
    keys = [str(key) for key in document if len(str(key)) <= MARK_MAX_CHARS]
    marks = {mark: dialect for dialect in DIALECTS for mark in dialect.marks}
    near = (get_close_matches(key, marks, n=1, cutoff=MARK_LIKENESS) for key in keys[:KEYS_MAX])
    return next((marks[found[0]] for found in near if found), None)
