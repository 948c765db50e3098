"""A request: held whole against schema, policy and our own checks; either sound, or everything that is wrong with it.

What is checked here is in our own dialect; `reading.py` makes that of the user's text.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from typing import Any

from trainmaster.orchestrator.core.deployment_names import team_account
from trainmaster.orchestrator.core.documents.faults import (
    Fault,
    Refused,
    Suggestions,
    first_of_each_place,
    json_step,
    refusal_of,
    without_echoes,
)
from trainmaster.orchestrator.core.documents.validation import schema_faults
from trainmaster.orchestrator.core.documents.values import text_at
from trainmaster.orchestrator.core.policy.policy import Machines, Policy
from trainmaster.orchestrator.core.policy.teams import policy_of, team_fault
from trainmaster.orchestrator.core.requests.checks import cluster, programs
from trainmaster.orchestrator.core.requests.checks.matrix import matrix_faults
from trainmaster.orchestrator.core.requests.checks.policy import policy_faults
from trainmaster.orchestrator.core.requests.checks.secrets import secret_faults
from trainmaster.orchestrator.core.requests.checks.tuning import goal_warnings, tuning_faults
from trainmaster.orchestrator.core.requests.draft import (
    FALLBACK_KEYS,
    Draft,
    fallback_path,
    iter_fallbacks,
    placeable,
    with_patch,
    without_fallbacks,
)
from trainmaster.orchestrator.core.requests.evaluation import evaluation_faults
from trainmaster.orchestrator.core.requests.matrix import run_count, run_documents
from trainmaster.orchestrator.core.requests.placeholders import placeholder_faults
from trainmaster.orchestrator.core.requests.spec import JobSpec, pools_for, spec_from
from trainmaster.orchestrator.core.runs.record import Estimate
from trainmaster.orchestrator.core.sizes import MAX_REQUEST_BYTES

REQUEST_SCHEMA = "training_request.v1"


@dataclass(frozen=True, kw_only=True)
class RequestRules:
    """What requests are checked against: schemas by their id, the policy, the region of this deployment, and the day (UTC).

    Without a policy, as where a request is only converted, everything is allowed, and `gpu` chooses from the
    machines `without_policy`. `names` are the values of the deployment's placeholders.
    """

    schemas: Mapping[str, Mapping[str, Any]]
    policy: Policy | None
    region: str
    today: date
    without_policy: tuple[Machines, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def machines(self) -> tuple[Machines, ...]:
        return self.without_policy if self.policy is None else self.policy.machines

    def of_team(self, team: str | None, found: str = "") -> "RequestRules | Refused":
        """The same for requests of one team, or of a deployment without teams; `found` is where they come from.

        Refused, if the policy does not name the team, or names teams and this is none.
        """
        fault = team_fault(self.policy, team, found)
        if fault is not None:
            return Refused(faults=(fault,))
        if team is None or self.policy is None:
            return self
        return replace(self, policy=policy_of(self.policy, team))


@dataclass(frozen=True, kw_only=True)
class Request:
    """A sound request: its canonical document, the job it describes, and what the user should know of it."""

    document: Mapping[str, Any]
    """In our own dialect, the model's name, the region and the timeout resolved."""
    spec: JobSpec
    """With a matrix, of its first run."""
    warnings: tuple[Fault, ...] = ()
    dialect: str = "trainmaster"
    """The dialect that the user wrote."""
    estimate: Estimate | None = None
    """What it may cost at most, where the policy asks for it."""
    pools: tuple[str, ...] = ()
    """The ids of the policy's persistent resources that are tried first."""
    has_default_timeout: bool = False
    """Whether the timeout is the policy's, because the user wrote none."""
    written_path: Callable[[str], str] = field(default=str, repr=False, compare=False)
    """Where the user's text says what the canonical document has at a path."""

    @property
    def runs(self) -> int:
        """How many runs it starts, more than one by its matrix; the estimate is that of one."""
        return run_count(self.document)


_ELSEWHERE = "store data where the trainer can read it, and pass its location in args"


def too_large(size_bytes: int) -> Refused | None:
    """The refusal of a request by its size alone, before any of it is read."""
    return oversized_refusal(found=f"{size_bytes} bytes") if size_bytes > MAX_REQUEST_BYTES else None


def oversized_refusal(
    *,
    what: str = "a request",
    at_most: int = MAX_REQUEST_BYTES,
    repair: str = _ELSEWHERE,
    found: str = "",
) -> Refused:
    """The refusal of a request, or another kind of file. Without `found`, its reading ended at the limit."""
    return refusal_of(
        problem=f"the file is too large for {what}",
        found=found or f"more than {at_most} bytes",
        allowed=f"at most {at_most} bytes",
        repair=repair,
    )


def checked_again(document: Mapping[str, Any], request_rules: RequestRules) -> Request | Refused:
    """The canonical document of an accepted request, checked against the current policy."""
    return check_document(document, request_rules, document["region"])


def check_document(
    document: Mapping[str, Any],
    request_rules: RequestRules,
    region: str,
    *,
    written_path: Callable[[str], str] = str,
    spelled: Mapping[str, str] | None = None,
    faults: Iterable[Fault] = (),
) -> Request | Refused:
    """The request that runs in `region`, or every fault of it, each at its `written_path` in the user's text.

    `faults` are known already, and `spelled` is as in `Document`.
    """
    draft = Draft(document=document, policy=request_rules.policy, region=region)
    secrets, *found = _document_faults(draft, request_rules, spelled or {})

    def moved_to_text(group: Iterable[Fault]) -> list[Fault]:
        return [fault.moved(written_path) for fault in group]

    # No fault may quote a secret; and what the text itself got wrong need not be reported again.
    of_fallbacks = _of_fallbacks(draft, request_rules, found)
    others = map(moved_to_text, (*found, *of_fallbacks))
    known = first_of_each_place((moved_to_text(secrets), faults, *others))
    if known:
        return Refused(faults=tuple(sorted(without_echoes(set(known)))))
    warnings = [*cluster.cluster_warnings(draft), *goal_warnings(draft), *programs.program_warnings(draft)]
    warnings += programs.prebuilt_warnings(draft, request_rules.today)
    complete = _with_team(_with_times(document, request_rules.policy), request_rules.policy)
    spec, policy = spec_from(run_documents(complete)[0]), request_rules.policy
    return Request(
        document={**complete, "region": region},
        spec=spec,
        pools=pools_for(spec, region, policy.pools if policy else ()),
        has_default_timeout=request_rules.policy is not None and "timeout_s" not in draft.scheduling,
        warnings=tuple(sorted(set(moved_to_text(warnings)))),
        written_path=written_path,
    )


def _with_times(document: Mapping[str, Any], policy: Policy | None) -> Mapping[str, Any]:
    """The document with the policy's timeout and its deadline for the start, where it has none."""
    if policy is None:
        return document
    defaults = {"timeout_s": policy.timeout_s, "start_within_s": policy.admission.start_within_s}
    known = {key: value for key, value in defaults.items() if value is not None}
    return {**document, "scheduling": {**known, **document.get("scheduling", {})}}


def _with_team(document: Mapping[str, Any], policy: Policy | None) -> Mapping[str, Any]:
    """The document with the account and the folder of its team, where it names none; without teams the same object.

    They are resolved once, so every later step treats the run like one whose request named them.
    """
    if policy is None or policy.team is None:
        return document
    account = team_account(policy.team, policy.project, policy.prefix)
    output = {"prefix_uri": policy.models_uri, **document.get("output", {})}
    return {"service_account": account, **document, "output": output}


def _in_fallback(index: int, path: str) -> str:
    return f"{fallback_path(index)}{path.removeprefix('$')}"


def _document_faults(
    draft: Draft, request_rules: RequestRules, spelled: Mapping[str, str]
) -> tuple[list[Fault], ...]:
    """What is wrong with our own document; the first group that names a place knows most of it.

    Placeholders and roles come before the schema: of a misspelt one and of a second chief they know more.
    """
    # Before all others, for it makes 2.0 the 2 that they count.
    of_schema = schema_faults(request_rules.schemas[REQUEST_SCHEMA], draft.document, spelled)
    rest = (
        placeholder_faults(draft),
        cluster.cluster_faults(draft),
        of_schema,
        policy_faults(draft),
        programs.prebuilt_faults(draft, request_rules.today),
        tuning_faults(draft),
        [*matrix_faults(draft)],
        [*evaluation_faults(draft, request_rules.today)],
    )
    return (secret_faults(draft), *rest)


def _known_part(part: object, path: str, unknown: Collection[str]) -> object:
    """The part without the keys at the unknown paths: what follows from them is no fault of its own."""
    if not isinstance(part, Mapping):
        return part
    paths = {key: f"{path}{json_step(str(key))}" for key in part}
    return {key: _known_part(part[key], at, unknown) for key, at in paths.items() if at not in unknown}


def _of_fallbacks(
    draft: Draft, request_rules: RequestRules, known: Iterable[list[Fault]]
) -> Iterator[list[Fault]]:
    """What each fallback makes of the request, at its own place; what the request has wrong anyway is known."""
    document = draft.document
    yield cluster.fallback_faults(document, draft.region)
    own, whole_schema = placeable(document), request_rules.schemas[REQUEST_SCHEMA]
    # Of the parts of a request that a fallback may change.
    properties = {key: whole_schema["properties"][key] for key in FALLBACK_KEYS}
    schema = {"$defs": whole_schema["$defs"], "type": "object", "properties": properties}
    reported, suggestions = {fault for group in known for fault in group}, Suggestions()
    unknown = {fault.path for fault in reported if fault.is_key}
    for index, patch in iter_fallbacks(document):
        whole = without_fallbacks(with_patch(own, _known_part(patch, fallback_path(index), unknown)))
        candidate = replace(draft, document=whole, region=text_at(whole, "region") or draft.region)
        changed = {key: whole[key] for key in FALLBACK_KEYS if key in whole}
        for group in (
            cluster.cluster_faults(candidate),
            schema_faults(schema, changed, None, suggestions),
            policy_faults(candidate),
            programs.prebuilt_faults(candidate, request_rules.today),
        ):
            yield [fault.moved(partial(_in_fallback, index)) for fault in group if fault not in reported]
