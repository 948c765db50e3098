"""What requests may ask for, and where a request asks for more.

Checks read the raw document and pass over what has the wrong type: the schema reports that, in the
same report.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.core.codec import decoded
from orchestrator.core.faults import Fault, PathPart, json_path, listed, nearest, shown
from orchestrator.core.tuning_checks import parameters_in

POOLS = ("chief", "workers")  # parameter servers and evaluators take the next two places


@dataclass(frozen=True, kw_only=True)
class Machines:
    """Machine types that take the same accelerators, in the same counts."""

    types: tuple[str, ...]
    accelerators: Mapping[str, tuple[int, ...]] | None = None
    accelerator_required: bool = False


@dataclass(frozen=True, kw_only=True)
class EnvPolicy:
    refused: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ImageFlags:
    """The flags that images of these names take; whatever else a tuning varies would fail every trial."""

    images: tuple[str, ...]
    flags: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The policy file, its `${…}` filled in: schemas/policy.v1.schema.json."""

    schema: str
    images: tuple[str, ...]
    regions: tuple[str, ...]
    machines: tuple[Machines, ...]
    max_replicas: int
    max_timeout_s: int
    service_accounts: tuple[str, ...]
    networks: tuple[str, ...]
    output_prefixes: tuple[str, ...]
    env: EnvPolicy
    image_flags: tuple[ImageFlags, ...] = ()

    def machines_of(self, machine_type: str) -> Machines | None:
        return next((row for row in self.machines if machine_type in row.types), None)


def policy_from(document: object, names: Mapping[str, str]) -> Policy:
    """The policy in a document that its schema accepts; `names` are the deployment's own, for `${…}`.

    Raises:
        ValueError: the document is no policy, or names something else in `${…}`.
    """
    policy = decoded(Policy, document)

    def filled(patterns: Sequence[str]) -> tuple[str, ...]:
        return tuple(_filled(pattern, names) for pattern in patterns)

    return replace(
        policy,
        images=filled(policy.images),
        regions=filled(policy.regions),
        service_accounts=filled(policy.service_accounts),
        networks=filled(policy.networks),
        output_prefixes=filled(policy.output_prefixes),
        image_flags=tuple(replace(row, images=filled(row.images)) for row in policy.image_flags),
    )


def _filled(pattern: str, names: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        if match[1] not in names:
            raise ValueError(f"{pattern!r} names ${{{match[1]}}}; allowed: {listed(sorted(names))}")
        return names[match[1]]

    return re.sub(r"\$\{(\w+)\}", value, pattern)


def matches(pattern: str, text: str) -> bool:
    """Whether the text is of the pattern: `*` any characters but '/', `**` any characters."""
    parts = re.split(r"(\*\*|\*)", pattern)
    wild = {"**": ".*", "*": "[^/]*"}
    return (
        re.fullmatch("".join(wild.get(part, re.escape(part)) for part in parts), text, re.DOTALL) is not None
    )


def _among(text: str, patterns: Sequence[str]) -> bool:
    return any(matches(pattern, text) for pattern in patterns)


def policy_faults(policy: Policy, document: object, region: str) -> list[Fault]:
    """Every place where the request asks for what the policy does not give, sorted by path."""
    faults = [
        *_image(policy, document),
        *(fault for pool in POOLS for fault in _machine(policy, document, pool)),
        *_replicas(policy, document),
        *_timeout(policy, document),
        *_listed(policy.service_accounts, document, "service_account"),
        *_listed(policy.networks, document, "network"),
        *_output(policy, document),
        *_env(policy, document),
        *_flags(policy, document),
    ]
    if not _among(region, policy.regions):
        faults.append(
            Fault(
                path="$",
                problem="no region of the policy",
                found=shown(region),
                allowed=listed(policy.regions),
            )
        )
    return sorted(faults)


def _at(document: object, *path: PathPart) -> object:
    for part in path:
        if not isinstance(document, Mapping):
            return None
        document = document.get(part)
    return document


def _text(document: object, *path: PathPart) -> str | None:
    value = _at(document, *path)
    return value if isinstance(value, str) else None


def _whole(document: object, *path: PathPart) -> int | None:
    value = _at(document, *path)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _refused(path: tuple[PathPart, ...], found: object, allowed: str, repair: str = "") -> Fault:
    return Fault(
        path=json_path(path),
        problem="the policy does not allow it",
        found=shown(found),
        allowed=allowed,
        repair=repair,
    )


def repository(image: str) -> str:
    """The image without `@digest` and `:tag`; a port in the host stays."""
    name = image.partition("@")[0]
    head, slash, tail = name.rpartition("/")
    return head + slash + tail.partition(":")[0]


def _image(policy: Policy, document: object) -> Iterator[Fault]:
    image = _text(document, "image")
    # A path component `..` would let an image leave the repository that a pattern names.
    if image is not None and (".." in image.split("/") or not _among(repository(image), policy.images)):
        yield _refused(("image",), image, listed(policy.images))


def _machine(policy: Policy, document: object, pool: str) -> Iterator[Fault]:
    here: tuple[PathPart, ...] = ("cluster", pool)
    machine = _text(document, *here, "machine")
    if machine is None:
        return
    row = policy.machines_of(machine)
    if row is None:
        every = [name for machines in policy.machines for name in machines.types]
        yield _refused((*here, "machine"), machine, listed(every), nearest(machine, every))
        return
    accelerator = _text(document, *here, "accelerator", "type")
    count = _whole(document, *here, "accelerator", "count")
    taken = row.accelerators or {}
    kinds = listed(f"{name} ({listed(counts)})" for name, counts in taken.items())
    if accelerator is None:
        if row.accelerator_required and _at(document, *here, "accelerator") is None:
            yield Fault(
                path=json_path((*here, "accelerator")),
                problem=f"missing: {machine} comes with accelerators",
                allowed=kinds,
            )
        return
    if accelerator not in taken:
        yield Fault(
            path=json_path((*here, "accelerator", "type")),
            problem=f"{machine} does not take it",
            found=shown(accelerator),
            allowed=kinds or "none",
            repair=nearest(accelerator, list(taken)),
        )
    elif count is not None and count not in taken[accelerator]:
        yield Fault(
            path=json_path((*here, "accelerator", "count")),
            problem=f"{machine} does not take this many {accelerator}",
            found=shown(count),
            allowed=listed(taken[accelerator]),
        )


def _replicas(policy: Policy, document: object) -> Iterator[Fault]:
    workers = _whole(document, "cluster", "workers", "count")
    if workers is not None and workers + 1 > policy.max_replicas:
        yield _refused(
            ("cluster", "workers", "count"),
            workers,
            f"at most {policy.max_replicas - 1} workers beside the chief",
        )


def _timeout(policy: Policy, document: object) -> Iterator[Fault]:
    timeout_s = _whole(document, "scheduling", "timeout_s")
    if timeout_s is not None and timeout_s > policy.max_timeout_s:
        yield _refused(("scheduling", "timeout_s"), timeout_s, f"at most {policy.max_timeout_s}")


def _listed(patterns: Sequence[str], document: object, key: str) -> Iterator[Fault]:
    value = _text(document, key)
    if value is not None and not _among(value, patterns):
        yield _refused((key,), value, listed(patterns) or "none")


def _output(policy: Policy, document: object) -> Iterator[Fault]:
    prefix = _text(document, "output", "prefix_uri")
    if prefix is None:
        return
    inside = any(
        f"{prefix.rstrip('/')}/".startswith(f"{allowed.rstrip('/')}/") for allowed in policy.output_prefixes
    )
    if not inside or {".", ".."} & set(prefix.split("/")):
        yield _refused(("output", "prefix_uri"), prefix, listed(policy.output_prefixes) or "none")


def _env(policy: Policy, document: object) -> Iterator[Fault]:
    env = _at(document, "env")
    for name in sorted(str(key) for key in env) if isinstance(env, Mapping) else ():
        if _among(name, policy.env.refused):
            yield Fault(
                path=json_path(("env", name)),
                problem="the policy keeps this name for the service",
                found=shown(name),
                allowed=f"any name but {listed(policy.env.refused)}",
            )


def _flags(policy: Policy, document: object) -> Iterator[Fault]:
    image, tuning = _text(document, "image"), _at(document, "tuning")
    if image is None or not isinstance(tuning, Mapping):
        return
    row = next((row for row in policy.image_flags if _among(repository(image), row.images)), None)
    for path, name, _ in parameters_in(tuning) if row is not None else ():
        if row is not None and name not in row.flags:
            yield Fault(
                path=json_path(path),
                problem="the image takes no such flag, so every trial would fail",
                found=shown(f"--{name}"),
                allowed=listed(row.flags, most=20),
                repair=nearest(name, row.flags),
            )
