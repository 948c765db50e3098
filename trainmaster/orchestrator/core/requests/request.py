"""2. A request, read and checked whole: either a sound one or everything that is wrong with it."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from trainmaster.orchestrator.core.documents.document import Document, document_in
from trainmaster.orchestrator.core.documents.faults import Fault, listed, shown
from trainmaster.orchestrator.core.documents.translation import Translated
from trainmaster.orchestrator.core.documents.unvalidated import text_at
from trainmaster.orchestrator.core.documents.validation import schema_faults
from trainmaster.orchestrator.core.policy.policy import Policy, among
from trainmaster.orchestrator.core.requests.checks.fallbacks import fallback_faults
from trainmaster.orchestrator.core.requests.checks.policy import policy_faults
from trainmaster.orchestrator.core.requests.checks.roles import role_faults, role_warnings
from trainmaster.orchestrator.core.requests.checks.secrets import secret_faults
from trainmaster.orchestrator.core.requests.checks.tuning import tuning_faults
from trainmaster.orchestrator.core.requests.dialects import (
    DIALECTS,
    LEGACY,
    OWN,
    VERTEX_CUSTOM,
    VERTEX_TUNING,
    Dialect,
    dialect_of,
)
from trainmaster.orchestrator.core.requests.estimate import Cost, Estimate
from trainmaster.orchestrator.core.requests.fallbacks import (
    fallback_path,
    fallbacks_in,
    merged,
    without_fallbacks,
)
from trainmaster.orchestrator.core.requests.spec import JobSpec, spec_from

if TYPE_CHECKING:
    # Read late, as the price table is: most deployments never ask what a run costs.
    from trainmaster.orchestrator.core.admission.prices import Prices

MAX_REQUEST_BYTES = 256 * 1024
MAX_FAULTS = 200
__all__ = [
    "DIALECTS",
    "LEGACY",
    "MAX_FAULTS",
    "MAX_REQUEST_BYTES",
    "OWN",
    "VERTEX_CUSTOM",
    "VERTEX_TUNING",
    "Dialect",
    "Refused",
    "Request",
    "Standards",
    "checked_request",
    "dialect_of",
    "request_in",
    "too_large",
]


@dataclass(frozen=True, kw_only=True)
class Standards:
    """What requests are held against: schemas by their id, the policy, and the region of this deployment.

    Without a policy, as where a request is only converted, everything is allowed. `prices` reads the price
    table, which is asked for only where the policy wants to know what runs cost; None: there is none.
    """

    schemas: Mapping[str, Mapping[str, Any]]
    policy: Policy | None
    region: str
    prices: "Callable[[], Prices] | None" = None


@dataclass(frozen=True, kw_only=True)
class Request:
    """A sound request: its document as written, the job it describes, and what the user should know of it.

    `estimate` is there where the policy asks for it: what the dearest of its rungs may cost.
    """

    document: Mapping[str, Any]
    spec: JobSpec
    warnings: tuple[Fault, ...] = ()
    estimate: Estimate | None = None


@dataclass(frozen=True, kw_only=True)
class Refused:
    """A faulty request: every fault, sorted by path; of more than MAX_FAULTS the first, and how many there were.

    A report is to be read, and a small file can hold a fault in every fourth byte.
    """

    faults: tuple[Fault, ...]

    def __post_init__(self) -> None:
        more = len(self.faults) - MAX_FAULTS
        if more > 0:
            rest = Fault(path="$", problem=f"{more} more faults are not listed", repair="correct these first")
            object.__setattr__(self, "faults", (*self.faults[:MAX_FAULTS], rest))


def too_large(size_bytes: int) -> Refused | None:
    """The refusal of a request by its size alone, before any of it is read."""
    if size_bytes <= MAX_REQUEST_BYTES:
        return None
    fault = Fault(
        path="$",
        problem="the file is too large for a request",
        found=f"{size_bytes} bytes",
        allowed=f"at most {MAX_REQUEST_BYTES} bytes",
        repair="put data where the trainer reads it, and name the place in args",
    )
    return Refused(faults=(fault,))


def request_in(
    content: bytes, *, as_json: bool, standards: Standards, name: str | None = None
) -> Request | Refused:
    """The request in these bytes, or every fault of text, schema and policy at once.

    `name` is what the model is called where the request does not say.
    """
    refusal = too_large(len(content))
    if refusal is not None:
        return refusal
    return checked_request(document_in(content, as_json=as_json), standards, name=name)


def checked_request(read: Document, standards: Standards, *, name: str | None = None) -> Request | Refused:
    """The request in values that were read already, held against schema and policy."""
    if read.value is None and read.faults:
        return Refused(faults=read.faults)
    if not isinstance(read.value, dict):
        fault = Fault(path="$", problem="a request is a mapping of keys to values", found=shown(read.value))
        return Refused(faults=(*read.faults, fault))
    return _checked(read.value, read, standards, name)


def _checked(
    value: dict[str, Any], read: Document, standards: Standards, name: str | None
) -> Request | Refused:
    dialect = dialect_of(value)
    schema = standards.schemas[dialect.schema_id]
    meant = _allowed(dialect.in_own(value, name), standards)
    faults = {*read.faults, *meant.faults, *_elsewhere(meant, standards)}
    spelled = {meant.own_path(path): text for path, text in read.spelled.items()}
    secrets = [
        replace(fault, path=meant.written_path(fault.path))
        for fault in secret_faults(standards.policy, meant.document)
    ]
    # No other fault of the place may quote the secret.
    hidden = {fault.path for fault in secrets}
    faults = {*secrets, *(fault for fault in faults if fault.path not in hidden)}
    # What the text spoiled, nobody need report again, nor the policy what the schema refused.
    home = _home(meant, standards)
    found = _found(meant.document, standards, schema, home, spelled)
    for group in (*found, *_of_fallbacks(meant.document, standards, schema, home, found)):
        checked = [replace(fault, path=meant.written_path(fault.path)) for fault in group]
        reported = {fault.path for fault in faults}
        faults |= {fault for fault in checked if fault.path not in reported}
    if faults:
        return Refused(faults=tuple(sorted(faults)))
    return _priced(value, meant, standards, home)


def _found(
    document: Mapping[str, Any],
    standards: Standards,
    schema: Mapping[str, Any],
    region: str,
    spelled: Mapping[str, str],
) -> tuple[list[Fault], ...]:
    """What is wrong with our own document; the first group that names a place knows most of it.

    The roles come first: of a second chief they know more than the schema.
    """
    of_schema = schema_faults(
        schema, document, spelled
    )  # before all others, for it makes 2.0 the 2 that they count
    return (
        role_faults(standards.policy, document),
        of_schema,
        _refused(document, standards, region),
        tuning_faults(document),
    )


def _of_fallbacks(
    document: Mapping[str, Any],
    standards: Standards,
    schema: Mapping[str, Any],
    home: str,
    known: tuple[list[Fault], ...],
) -> Iterator[list[Fault]]:
    """What each fallback makes of the request, at its own place; what the request has wrong anyway is known."""
    own = without_fallbacks(document)
    yield fallback_faults(document, home)
    told = {fault for group in known for fault in group}
    for index, patch in fallbacks_in(document):
        rung = without_fallbacks(merged(own, patch))
        for group in _found(rung, standards, schema, text_at(rung, "region") or home, {}):
            yield [
                replace(fault, path=f"{fallback_path(index)}{fault.path.removeprefix('$')}")
                for fault in group
                if fault not in told
            ]


def _priced(value: dict[str, Any], meant: Translated, standards: Standards, home: str) -> Request | Refused:
    """The sound request with what it may cost, where that matters; too dear a one is refused."""
    cost = Cost()
    if standards.policy is not None and standards.policy.admission.priced and standards.prices is not None:
        from trainmaster.orchestrator.core.admission.cost import cost_of
        from trainmaster.orchestrator.core.admission.rung import rungs_of

        cost = cost_of(standards.policy.admission.caps, rungs_of(meant.document, home), standards.prices())
    faults = (replace(each, path=meant.written_path(each.path)) for each in cost.faults)
    if cost.faults:
        return Refused(faults=tuple(sorted(faults)))
    warnings = (
        replace(each, path=meant.written_path(each.path))
        for each in (*role_warnings(standards.policy, meant.document), *cost.warnings)
    )
    return Request(
        document=value,
        spec=spec_from(meant.document),
        warnings=tuple(sorted({*meant.warnings, *warnings})),
        estimate=cost.estimate,
    )


def _refused(document: Mapping[str, Any], standards: Standards, region: str) -> list[Fault]:
    """What the policy has against our own document."""
    if standards.policy is None:
        return []
    return policy_faults(standards.policy, document, region)


def _allowed(meant: Translated, standards: Standards) -> Translated:
    """The request without what the policy refuses and the dialect can do without."""
    if not meant.yielding:
        return meant
    home = _home(meant, standards)
    refused = {fault.path for fault in _refused(meant.document, standards, home)}
    gone = [key for key in meant.yielding if any(path.startswith(f"$.{key}") for path in refused)]
    warnings = [
        Fault(
            path=meant.written_path(f"$.{key}"),
            problem=f"the policy does not allow it as {key}, so the deployment's own is taken",
        )
        for key in gone
    ]
    document = {key: value for key, value in meant.document.items() if key not in gone}
    return replace(meant, document=document, warnings=(*meant.warnings, *warnings))


def _home(meant: Translated, standards: Standards) -> str:
    """Where the request itself runs; the deployment's own region where it asks for none that there is."""
    asked = text_at(meant.document, "region") or (None if _elsewhere(meant, standards) else meant.region)
    return asked or standards.region


def _elsewhere(meant: Translated, standards: Standards) -> list[Fault]:
    """A region of another dialect that is none of ours; of our own document's the policy's checks know."""
    if meant.region in (None, standards.region, text_at(meant.document, "region")):
        return []
    regions = (standards.region,) if standards.policy is None else standards.policy.regions
    if among(meant.region or "", regions):
        return []
    fault = Fault(
        path=meant.written_path("$.region"),
        problem="jobs of this deployment run in another region",
        found=shown(meant.region),
        allowed=listed(regions),
        repair=f"write region: {standards.region}, or drop the file where the deployment of that region listens",
    )
    return [fault]
