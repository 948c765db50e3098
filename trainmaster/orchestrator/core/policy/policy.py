"""The policy file, which says what requests may ask for, and its patterns.

References to container images are read by the grammar of the registries.
Source: https://github.com/distribution/reference, `reference.go` (2026-11). Two differences: hosts are in lower-case
letters, as in the schema of requests, and digests are SHA-256, the only algorithm of Artifact Registry.
"""

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from ipaddress import ip_address, ip_network

from trainmaster.orchestrator.core.documents.codec import decoded
from trainmaster.orchestrator.core.names import in_team, object_uri
from trainmaster.orchestrator.core.policy.admission import Admission, normalize_admission
from trainmaster.orchestrator.core.policy.checks import fill_in, policy_faults
from trainmaster.orchestrator.core.policy.console import ConsolePolicy
from trainmaster.orchestrator.core.policy.pools import RunPool
from trainmaster.orchestrator.core.policy.receivers import Receiver
from trainmaster.orchestrator.core.policy.registry import Registry, normalize_registry
from trainmaster.orchestrator.core.policy.retention import Retention
from trainmaster.orchestrator.core.policy.waste import WastePolicy


@dataclass(frozen=True, kw_only=True)
class Team:
    """What the policy says about one team.

    Attributes:
        members: who may drop its files and read its models; for Terraform only.
        requests_topic: the id of the topic whose messages are the team's; None: it has none.
        images: patterns of the images it may use; None: all that the policy allows.
        shared_prefixes: `gs://` URIs outside its folders, below which its packages, scripts and watched data may be.
    """

    members: tuple[str, ...] = ()
    requests_topic: str | None = None
    images: tuple[str, ...] | None = None
    shared_prefixes: tuple[str, ...] = ()


_WORD = "[a-z0-9]+"
_LABEL = f"{_WORD}(?:-+{_WORD})*"
_HOST = rf"{_LABEL}(?:\.{_LABEL})*(?::[0-9]{{1,5}})?"
_COMPONENT = rf"{_WORD}(?:(?:\.|__?|-+){_WORD})*"
_REFERENCE = re.compile(
    rf"(?P<name>(?:{_HOST}/)?{_COMPONENT}(?:/{_COMPONENT})*)"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?"
    r"(?P<digest>@sha256:[0-9a-f]{64})?"
)


def repository(image: str) -> str:
    """The image without tag and digest; a port in the host stays. Empty if the text does not refer to an image."""
    match = _REFERENCE.fullmatch(image)
    return match["name"] if match is not None else ""


def has_digest(image: str) -> bool:
    """Whether the image is named by its digest, so that no push can replace it."""
    match = _REFERENCE.fullmatch(image)
    return match is not None and match["digest"] is not None


GLOB_MAX_CHARS = 4096
"""Of a pattern and of a text. The longest that match are the URIs of objects, of up to 1,100 characters."""
TPU = "TPU_"
"""The prefix of Vertex AI's names for TPU accelerators."""


@dataclass(frozen=True, kw_only=True)
class Machines:
    """Machine types that take the same accelerators in the same counts, or the same TPU topologies.

    `unverified` names what the service's documentation does not confirm; empty if it confirms everything.
    """

    types: tuple[str, ...]
    accelerators: Mapping[str, tuple[int, ...]] | None = None
    accelerator_required: bool = False
    tpu_topologies: tuple[str, ...] = ()
    unverified: str = ""

    @property
    def has_tpus(self) -> bool:
        return bool(self.tpu_topologies) or any(name.startswith(TPU) for name in self.accelerators or {})


@dataclass(frozen=True, kw_only=True)
class RefusedNames:
    """Patterns of names that requests may not set, compared without regard to case; why, and what to do instead."""

    names: tuple[str, ...]
    why: str = ""
    instead: str = ""

    def matches(self, name: str) -> bool:
        return _any_of(self.names).fullmatch(name[:GLOB_MAX_CHARS].upper()) is not None


@dataclass(frozen=True, kw_only=True)
class EnvPolicy:
    """Names that requests may not set, and names whose values are treated as secrets, in upper case."""

    refused: tuple[RefusedNames, ...]
    secrets: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ImageFlags:
    """The flags that these images accept; a tuning that varies any other flag would fail in every trial.

    `runs_trainer`: they run trainer/task.py, so the clusters that its `--strategy` supports are known.
    """

    images: tuple[str, ...]
    flags: tuple[str, ...]
    runs_trainer: bool = False


class RetiredImages(StrEnum):
    """What happens to a request for one of Google's prebuilt containers after its end of availability."""

    REFUSE = "refuse"
    WARN = "warn"


@dataclass(frozen=True, kw_only=True)
class EvaluationPolicy:
    """The jobs that score models: on one such machine, at most so long; and how long a verdict waits for approval."""

    machine: str = "n1-standard-4"
    timeout_s: int = 3600
    approve_within_days: int = 7


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The policy file, its `${…}` filled in: schemas/policy.v1.schema.json.

    What an older file does not mention is refused, except `executor_images`, which default to `images`, and
    `default_timeout_s`.
    """

    schema: str
    images: tuple[str, ...]
    regions: tuple[str, ...]
    machines: tuple[Machines, ...]
    max_replicas: int
    max_timeout_s: int
    service_accounts: tuple[str, ...]
    networks: tuple[str, ...]
    tensorboards: tuple[str, ...] = ()
    experiments: tuple[str, ...] = ()
    output_prefixes: tuple[str, ...]
    env: EnvPolicy
    default_timeout_s: int = 24 * 3600
    image_flags: tuple[ImageFlags, ...] = ()
    executor_images: tuple[str, ...] | None = None
    package_prefixes: tuple[str, ...] = ()
    script_prefixes: tuple[str, ...] = ()
    script_image: str | None = None
    """What runs a script whose request names no image."""
    encryption_keys: tuple[str, ...] = ()
    persistent_resources: tuple[str, ...] = ()
    reservations: tuple[str, ...] = ()
    network_attachments: tuple[str, ...] = ()
    pools: tuple[RunPool, ...] = ()
    reserved_ip_ranges: tuple[str, ...] = ()
    nfs_servers: tuple[str, ...] = ()
    web_access: bool = False
    dashboard_access: bool = False
    require_digest: tuple[str, ...] = ()
    retired_images: RetiredImages = RetiredImages.REFUSE
    admission: Admission = field(default_factory=Admission)
    registry: Registry = field(default_factory=Registry)
    evaluation: EvaluationPolicy = field(default_factory=EvaluationPolicy)
    notify: tuple[Receiver, ...] = ()
    """Who gets notices outside Google Cloud."""
    retention: Retention = field(default_factory=dict)
    waste: WastePolicy | None = None
    console: ConsolePolicy = field(default_factory=ConsolePolicy)
    """Who may change something in the console behind Identity-Aware Proxy; the functions do not read it."""
    teams: Mapping[str, Team] = field(default_factory=dict)
    """By name. Without any, the deployment has one team, without folders."""
    team: str | None = None
    """The team to which this policy was narrowed by `teams.policy_of`; no file sets it."""
    models_bucket: str = ""
    project: str = ""
    prefix: str = ""
    """The deployment's own, which the file need not mention."""

    @property
    def models_uri(self) -> str:
        """Where runs write that name no other place: the models bucket, or the team's folder in it."""
        return object_uri(self.models_bucket, in_team(self.team, "")).rstrip("/")

    @property
    def model_prefixes(self) -> tuple[str, ...]:
        """Where a request may place its model: under the output prefixes, and always where runs write by default."""
        own = (self.models_uri,) if self.models_bucket else ()
        return tuple(dict.fromkeys((*own, *self.output_prefixes)))

    @property
    def timeout_s(self) -> int:
        """How long a job may run whose request has no timeout."""
        return min(self.default_timeout_s, self.max_timeout_s)

    @property
    def region_names(self) -> tuple[str, ...]:
        """The regions that are listed by name, not by a pattern."""
        return tuple(region for region in self.regions if "*" not in region)

    def machines_of(self, machine_type: str) -> Machines | None:
        return next((row for row in self.machines if machine_type in row.types), None)

    def flags_of(self, image: str) -> ImageFlags | None:
        """The flags that the image accepts; None if they are not known."""
        return next((row for row in self.image_flags if among(repository(image), row.images)), None)

    def serves_nfs(self, server: str) -> bool:
        """Whether the server is an IP address in one of the networks that shares may be mounted from."""
        try:
            address = ip_address(server)
        except ValueError:
            return False
        return any(address in ip_network(network) for network in self.nfs_servers)


def policy_from(document: object, names: Mapping[str, str]) -> Policy:
    """The policy in a document that its schema accepts; `names` are the deployment's own, for `${…}`, and may lack `prefix`.

    Raises:
        ValueError: the document is not a policy, or has `policy_faults`, which the message lists.
    """
    if faults := policy_faults(document, names):
        raise ValueError("; ".join(map(str, faults)))
    policy = decoded(Policy, _spelled_out(fill_in(document, names)[0]))
    models_bucket, project, prefix = (names.get(name, "") for name in ("models_bucket", "project", "prefix"))
    return replace(policy, team=None, models_bucket=models_bucket, project=project, prefix=prefix)


def _spelled_out(document: object) -> object:
    """The document with `require_digest: true` as a pattern that matches all images, and single names as rows."""
    if not isinstance(document, Mapping):
        return document
    spelled = dict(document)
    required = document.get("require_digest")
    if isinstance(required, bool):
        spelled["require_digest"] = ["**"] if required else []
    if "admission" in document:
        spelled["admission"] = normalize_admission(document["admission"])
    if "registry" in document:
        spelled["registry"] = normalize_registry(document["registry"])
    if isinstance(env := document.get("env"), Mapping):
        rows = env.get("refused", ())
        spelled["env"] = {
            **env,
            "refused": [{"names": [row]} if isinstance(row, str) else row for row in rows],
        }
    return spelled


def glob_matches(pattern: str, text: str) -> bool:
    """Whether the text matches the pattern: `*` is any characters but '/', `**` any characters.

    Users write patterns too, in rules: for any pattern, the time is at most quadratic in the text's length, which is
    bounded: what has more than GLOB_MAX_CHARS matches nothing, and no name of a service has as many.
    """
    if len(pattern) > GLOB_MAX_CHARS or len(text) > GLOB_MAX_CHARS:
        return False
    return _expression(pattern).fullmatch(text) is not None


@functools.lru_cache(maxsize=1024)
def _expression(pattern: str) -> re.Pattern[str]:
    """Each wildcard but the last takes the first position where the text after it matches, and never tries another.

    That misses no match: a later `**` takes everything in between, and so does a later `*` up to the next '/', which
    follows both positions. Backtracking over all positions could take practically forever.
    """
    *before, last = pattern.split("**")
    if not before:
        return re.compile(_to_the_end(last), re.DOTALL)
    first, *inner = before
    passed = "".join(f"(?>.*?{_first_fit(segment)})" for segment in inner if segment)
    return re.compile(f"{_first_fit(first)}{passed}.*{_to_the_end(last)}", re.DOTALL)


@functools.lru_cache(maxsize=64)
def _any_of(names: tuple[str, ...]) -> re.Pattern[str]:
    """One expression for a row of patterns in capitals: a request may have thousands of variables."""
    return re.compile("|".join(f"(?:{_expression(name.upper()).pattern})" for name in names), re.DOTALL)


def _first_fit(segment: str) -> str:
    first, *rest = map(re.escape, segment.split("*"))
    return first + "".join(f"(?>[^/]*?{text})" for text in rest)


def _to_the_end(segment: str) -> str:
    first, star, last = segment.rpartition("*")
    return f"{_first_fit(first)}[^/]*{re.escape(last)}" if star else re.escape(segment)


def among(text: str, patterns: Sequence[str]) -> bool:
    return any(glob_matches(pattern, text) for pattern in patterns)


def under(uri: str, prefixes: Sequence[str]) -> bool:
    """Whether the URI is under one of the prefixes, by whole path components, and contains no `.` or `..`."""
    inside = any(f"{uri.rstrip('/')}/".startswith(f"{prefix.rstrip('/')}/") for prefix in prefixes)
    return inside and not {".", ".."} & set(uri.split("/"))
