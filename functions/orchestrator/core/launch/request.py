"""2. A request, read and checked whole: either a sound one or everything that is wrong with it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.core.documents import Document, document_in
from orchestrator.core.faults import Fault, shown
from orchestrator.core.launch.legacy.marks import is_legacy
from orchestrator.core.launch.roles import role_faults, role_warnings
from orchestrator.core.launch.spec import JobSpec, spec_from
from orchestrator.core.launch.vertex_dialect import custom_job, is_custom_job, is_tuning_job, own, tuning_job
from orchestrator.core.launch.vertex_fields import Translated
from orchestrator.core.policy import Policy
from orchestrator.core.policy_checks import policy_faults
from orchestrator.core.secret_checks import secret_faults
from orchestrator.core.tuning_checks import tuning_faults
from orchestrator.core.validation import schema_faults

MAX_REQUEST_BYTES = 256 * 1024
MAX_FAULTS = 200


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """One way to write a request: how to know it, and what it says in our own way.

    Every dialect is held against the same schema and checks; its faults have the paths of the text.
    `in_own` is given the name that the model has where the document has none, if there is one.
    """

    name: str
    recognises: Callable[[Mapping[str, object]], bool]
    in_own: Callable[[Mapping[str, Any], str | None], Translated]
    schema_id: str = "training_request.v1"

    def spec_from(self, document: Mapping[str, Any], name: str | None) -> JobSpec:
        """The job of a document that `request_in` found sound under this name."""
        return spec_from(self.in_own(document, name).document)


def _legacy_in_own(document: Mapping[str, Any], name: str | None) -> Translated:
    # Imported late: few requests are of this kind, and a function's start must be short.
    from orchestrator.core.launch.legacy.dialect import translated as legacy_translated

    return legacy_translated(document, name)


LEGACY = Dialect(name="ai-platform", recognises=is_legacy, in_own=_legacy_in_own)
VERTEX_TUNING = Dialect(name="hp-tuning-jobs", recognises=is_tuning_job, in_own=tuning_job)
VERTEX_CUSTOM = Dialect(name="custom-jobs", recognises=is_custom_job, in_own=custom_job)
OWN = Dialect(name="trainmaster", recognises=lambda _: True, in_own=own)
DIALECTS = (LEGACY, VERTEX_TUNING, VERTEX_CUSTOM, OWN)
"""Asked in this order; our own comes last and takes whatever no other knows as its own."""


@dataclass(frozen=True, kw_only=True)
class Standards:
    """What requests are held against: schemas by their id, the policy, and the region of this deployment.

    Without a policy, as where a request is only converted, everything is allowed.
    """

    schemas: Mapping[str, Mapping[str, Any]]
    policy: Policy | None
    region: str


@dataclass(frozen=True, kw_only=True)
class Request:
    """A sound request: its document as written, the job it describes, and what the user should know of it."""

    document: Mapping[str, Any]
    spec: JobSpec
    warnings: tuple[Fault, ...] = ()


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
    # What the text spoiled, nobody need report again, nor the policy what the schema refused. The roles come
    # first: of a second chief they know more than the schema.
    for found in (
        role_faults(standards.policy, meant.document),
        schema_faults(standards.schemas[dialect.schema_id], meant.document, spelled),
        _refused(meant, standards),
        tuning_faults(meant.document),
    ):
        checked = [replace(fault, path=meant.written_path(fault.path)) for fault in found]
        reported = {fault.path for fault in faults}
        faults |= {fault for fault in checked if fault.path not in reported}
    if faults:
        return Refused(faults=tuple(sorted(faults)))
    warnings = (
        replace(each, path=meant.written_path(each.path))
        for each in role_warnings(standards.policy, meant.document)
    )
    return Request(
        document=value,
        spec=spec_from(meant.document),
        warnings=tuple(sorted({*meant.warnings, *warnings})),
    )


def _refused(meant: Translated, standards: Standards) -> list[Fault]:
    """What the policy has against our own document."""
    if standards.policy is None:
        return []
    return policy_faults(standards.policy, meant.document, standards.region)


def _allowed(meant: Translated, standards: Standards) -> Translated:
    """The request without what the policy refuses and the dialect can do without."""
    refused = {fault.path for fault in _refused(meant, standards)} if meant.yielding else set()
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


def _elsewhere(meant: Translated, standards: Standards) -> list[Fault]:
    if meant.region in (None, standards.region):
        return []
    fault = Fault(
        path=meant.written_path("$.region"),
        problem="jobs of this deployment run in another region",
        found=shown(meant.region),
        allowed=standards.region,
        repair=f"write region: {standards.region}, or drop the file where the deployment of that region listens",
    )
    return [fault]


def dialect_of(document: Mapping[str, Any]) -> Dialect:
    """The first dialect that knows the document."""
    return next(dialect for dialect in DIALECTS if dialect.recognises(document))
