"""A request as its user wrote it: in which dialect is recognized, then it is translated once, and checked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from trainmaster.orchestrator.core.documents.document import Document
from trainmaster.orchestrator.core.documents.faults import Fault, Refused
from trainmaster.orchestrator.core.documents.placing import faults_with_places
from trainmaster.orchestrator.core.documents.values import Work, text_at, units
from trainmaster.orchestrator.core.policy.policy import Policy, among
from trainmaster.orchestrator.core.requests.checks.policy import policy_faults
from trainmaster.orchestrator.core.requests.checks.secrets import secret_lines
from trainmaster.orchestrator.core.requests.draft import SCRIPT, Draft, iter_fallbacks, placeable
from trainmaster.orchestrator.core.requests.gpus import with_machines
from trainmaster.orchestrator.core.requests.own_document import Translated, with_meant_keys
from trainmaster.orchestrator.core.requests.placeholders import request_with_deployment
from trainmaster.orchestrator.core.requests.request import (
    REQUEST_SCHEMA,
    Request,
    RequestRules,
    check_document,
)
from trainmaster.orchestrator.core.requests.vertex.dialect import custom_job, tuning_job

MARK_MAX_CHARS, KEYS_MAX = 40, 40
MARK_LIKENESS = 0.85
"""How similar a key must be to a dialect's mark; no key of the project's dialect is."""
OWN_KEYS = frozenset({"model_name", "image", "python_package", "script", "cluster"})
"""A document with any of them is in our own dialect, whatever else it has."""

SMALL_MACHINE = "n1-standard-4"
SMALL_CLUSTER: Mapping[str, object] = {"chief": {"machine": SMALL_MACHINE}}
"""Of a request that names no cluster: the smallest machine of the policy that a GPU can be added to."""


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


def _ai_platform_in_own(document: Mapping[str, Any], name: str | None) -> Translated:
    # Imported late: few requests are of this kind, and a function's start must be short.
    from trainmaster.orchestrator.core.requests.ai_platform.dialect import ai_platform_job

    return ai_platform_job(document, name)


AI_PLATFORM = Dialect(
    name="ai-platform",
    marks=frozenset({"trainingInput", "training_input", "jobId", "job_id"}),
    in_own=_ai_platform_in_own,
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
DIALECTS = (AI_PLATFORM, VERTEX_TUNING, VERTEX_CUSTOM, OWN)
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


def checked_request(
    read: Document, request_rules: RequestRules, *, name: str | None = None, work: Work | None = None
) -> Request | Refused:
    """The request in values that are already parsed, checked against schema and policy, or every fault at once.

    `name` is what the model is called where the request does not say. Refused without a check, if that would take more
    than is left of `work`, the budget that a rule's checks share.
    """
    if read.value is None and read.faults:
        return Refused(faults=read.faults)
    if not isinstance(read.value, dict):
        alone = "send each request by itself" if isinstance(read.value, list) else ""
        fault = Fault(path="$", problem="a request must be a mapping", value=read.value, repair=alone)
        return Refused(faults=(*read.faults, fault))
    if is_rule(read.value):
        problem, repair = "this is a retraining rule, not a request", "copy it to rules/ in the inbox bucket"
        fault = Fault(path="$", problem=problem, repair=repair)
        return Refused(faults=(*read.faults, fault))
    refusal = _refusal_for_work(read.value, work or Work())
    if refusal is not None:
        return Refused(faults=(*read.faults, refusal))
    return _request_from(read.value, read, request_rules, name)


def _refusal_for_work(value: Mapping[str, Any], work: Work) -> Fault | None:
    whole, fallbacks = units(value), len(list(iter_fallbacks(value)))
    if work.take(whole + fallbacks * units(placeable(value))):
        return None
    beside = f" and {fallbacks} fallbacks" if fallbacks else ""
    return work.refusal(f"{whole} units for its values, texts and placeholders{beside}")


# Any: values of a document that no schema has validated.
def with_deployment_values(value: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The request with the deployment's placeholders filled, if it is in our own dialect: others have none."""
    filled: Any = request_with_deployment(value, names) if dialect_of(value) is OWN else value
    return dict(filled)


def with_places(outcome: Request | Refused, read: Document, policy: Policy | None) -> Request | Refused:
    """The request with its warnings, or the refusal with its faults, at their places in the text that was read.

    Lines that may hold a secret are not quoted.
    """
    found = outcome.faults if isinstance(outcome, Refused) else outcome.warnings
    if not found or not read.text:
        return outcome
    marked = faults_with_places(found, read, secret_lines(read, () if policy is None else policy.env.secrets))
    return Refused(faults=marked) if isinstance(outcome, Refused) else replace(outcome, warnings=marked)


def _request_from(
    value: dict[str, Any], read: Document, request_rules: RequestRules, name: str | None
) -> Request | Refused:
    dialect = dialect_of(value)
    value = with_deployment_values(value, request_rules.names)
    in_own = dialect.in_own(value, name)
    if dialect is OWN:
        in_own = with_meant_keys(in_own, request_rules.schemas[REQUEST_SCHEMA])
        in_own = replace(in_own, document={"cluster": SMALL_CLUSTER, **in_own.document})
    in_own = _with_script_image(in_own, request_rules)
    meant = _without_refused_keys(with_machines(in_own, request_rules.machines), request_rules)
    request = check_document(
        meant.document,
        request_rules,
        _home(meant, request_rules),
        written_path=meant.written_path,
        spelled={meant.own_path(path): text for path, text in read.spelled.items()},
        faults=(*read.faults, *meant.faults, *_elsewhere(meant, request_rules)),
    )
    if isinstance(request, Refused):
        return request
    return replace(
        request,
        # What yields was decided just now: a run on record writes where its record says, whatever the policy says later.
        document={key: part for key, part in request.document.items() if key not in meant.yielding},
        warnings=tuple(sorted({*meant.warnings, *request.warnings})),
        dialect=dialect.name,
    )


def _with_script_image(meant: Translated, request_rules: RequestRules) -> Translated:
    """The request of a script with the policy's image, if it names none."""
    image = request_rules.policy.script_image if request_rules.policy else None
    if image is None or SCRIPT not in meant.document or "image" in meant.document:
        return meant
    return replace(meant, document={**meant.document, "image": image})


def _without_refused_keys(meant: Translated, request_rules: RequestRules) -> Translated:
    """The request without what the policy refuses and the dialect can do without."""
    if not meant.yielding:
        return meant
    draft = Draft(document=meant.document, policy=request_rules.policy, region=_home(meant, request_rules))
    refused = {fault.path for fault in policy_faults(draft)}
    gone = [key for key in meant.yielding if any(path.startswith(f"$.{key}") for path in refused)]
    instead: dict[str, list[str]] = {}
    for key in gone:
        instead.setdefault(meant.written_path(f"$.{key}"), []).append(f"as {key}, so {_INSTEAD[key]}")
    problems = {
        path: f"the policy does not allow it {', and '.join(texts)}" for path, texts in instead.items()
    }
    warnings = [Fault(path=path, problem=problem) for path, problem in problems.items()]
    document = {key: value for key, value in meant.document.items() if key not in gone}
    return replace(meant, document=document, warnings=(*meant.warnings, *warnings))


_INSTEAD = {"output": "the deployment's default is used", "model_uri": "the model is not looked for there"}
"""What happens to a request without the key, for every key that may be dropped."""


def _home(meant: Translated, request_rules: RequestRules) -> str:
    """Where the request itself runs; the deployment's own region where it asks for none that there is."""
    asked = text_at(meant.document, "region") or (None if _elsewhere(meant, request_rules) else meant.region)
    return asked or request_rules.region


def _elsewhere(meant: Translated, request_rules: RequestRules) -> list[Fault]:
    """A region of another dialect that this deployment does not have; the policy's checks cover the project's dialect."""
    if meant.region in (None, request_rules.region, text_at(meant.document, "region")):
        return []
    regions = (request_rules.region,) if request_rules.policy is None else request_rules.policy.regions
    if among(meant.region or "", regions):
        return []
    fault = Fault(
        path=meant.written_path("$.region"),
        problem="this deployment runs jobs in another region",
        value=meant.region,
        among=regions,
        repair=f"write region: {request_rules.region}, or drop the file in the inbox of that region's deployment",
    )
    return [fault]
