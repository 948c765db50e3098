"""A request that the schema may still refuse, read once for all checks: its roles, what they run, their machines.

Its candidates are the request itself, then each of its fallbacks laid over it, a whole request again.

Values of the wrong kind are skipped: the schema reports them in the same report.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from trainmaster.orchestrator.core.documents.faults import json_path
from trainmaster.orchestrator.core.documents.values import Path, list_at, mapping_at, text_at
from trainmaster.orchestrator.core.policy.policy import ImageFlags, Machines, Policy

ROLES = ("chief", "workers", "parameter_servers", "evaluators")
"""The keys of a cluster that are roles, in the order of Vertex AI's worker pools."""
SCRIPT = "script"
"""The key of a request whose program is a packed script."""
IMAGE = ("image",)
EXECUTOR_IMAGE = ("python_package", "executor_image")
FALLBACKS = "fallbacks"
MAX_FALLBACKS = 8
"""As schemas/training_request.v1.schema.json says; no more are checked."""
FALLBACK_KEYS = ("region", "cluster", "scheduling")
_UNMOVED = frozenset(
    {"command", "args", "env", "python_package", "nfs_mounts", "reserved_ip_ranges", "tuning", "matrix"}
)


@dataclass(frozen=True, kw_only=True)
class Running:
    """What one role runs, and the paths of the document that say so.

    `named_at` is the path of what names the image or packages: the request itself, the chief, or the role.
    Where it runs a `package`, `image` is the executor's; where a `script`, that in which Python runs it. Of
    `env` each variable has its path and value.
    """

    named_at: Path
    package: Mapping[str, object] | None
    script: Mapping[str, object] | None
    image: str | None
    command: object
    command_at: Path | None
    args: Sequence[object]
    args_at: Path
    env: Mapping[str, tuple[Path, object]]


@dataclass(frozen=True, kw_only=True)
class Draft:
    """The document in our own dialect. Without a policy nothing is known of machines and images."""

    document: Mapping[str, object]
    policy: Policy | None = None
    region: str = ""
    """Where it would run; only the policy asks for it."""

    @cached_property
    def cluster(self) -> Mapping[str, object]:
        return mapping_at(self.document, "cluster")

    @cached_property
    def scheduling(self) -> Mapping[str, object]:
        return mapping_at(self.document, "scheduling")

    @cached_property
    def tuning(self) -> Mapping[str, object]:
        return mapping_at(self.document, "tuning")

    @cached_property
    def roles(self) -> Mapping[str, Mapping[str, object]]:
        """The roles that are there, in the order of the worker pools; also one that is alone in a list, which is a fault."""
        found = {role: self.cluster.get(role) for role in ROLES}
        alone = {
            role: pool[0] if isinstance(pool, list) and len(pool) == 1 else pool
            for role, pool in found.items()
        }
        return {role: pool for role, pool in alone.items() if isinstance(pool, Mapping)}

    @cached_property
    def places(self) -> Mapping[Path, Mapping[str, object]]:
        """Every place that may name a program: the request itself, then its roles."""
        return {(): self.document, **{("cluster", role): pool for role, pool in self.roles.items()}}

    @cached_property
    def images(self) -> Mapping[Path, str]:
        """Every image that the request names, of containers and of packages' executors, by its path."""
        return {
            (*here, *path): image
            for here, place in self.places.items()
            for path in (IMAGE, EXECUTOR_IMAGE)
            if (image := text_at(place, *path)) is not None
        }

    @cached_property
    def machines(self) -> Mapping[str, Machines]:
        """The policy's row of each role's machine, of the roles whose machine it has."""
        names = {role: text_at(pool, "machine") for role, pool in self.roles.items()}
        rows = {role: self.policy.machines_of(name) for role, name in names.items() if name and self.policy}
        return {role: row for role, row in rows.items() if row is not None}

    @cached_property
    def running(self) -> Mapping[str, Running]:
        """What each role runs, or would run: its own program, or the chief's with the request's words where it has none."""
        return {role: self.running_of(role) for role in ROLES}

    def flags_of(self, runs: Running) -> ImageFlags | None:
        """What the policy knows of the flags of the image's own program; None: nothing, or a script is run."""
        if runs.script is not None:
            return None
        return self.policy.flags_of(runs.image) if self.policy and runs.image is not None else None

    def running_of(self, role: str) -> Running:
        """What the role runs, or would run."""
        here: Path = ("cluster", role)
        own = mapping_at(self.cluster, role)
        sources: list[tuple[Path, Mapping[str, object]]] = [(here, own)]
        named_at, namer = here, own
        if not names_program(own):
            sources.append(((), self.document))
            chief = mapping_at(self.cluster, "chief")
            named_at, namer = (("cluster", "chief"), chief) if names_program(chief) else ((), self.document)
        package = mapping_at(namer, "python_package") if "python_package" in namer else None
        commands = (((*path, "command"), one["command"]) for path, one in sources if "command" in one)
        arguments = (((*path, "args"), source["args"]) for path, source in sources if "args" in source)
        command_at, command = next(commands, (None, []))
        args_at, args = next(arguments, ((*here, "args"), ()))
        return Running(
            named_at=named_at,
            package=package,
            script=mapping_at(namer, SCRIPT) if SCRIPT in namer and namer is self.document else None,
            image=text_at(namer, *(IMAGE if package is None else EXECUTOR_IMAGE)),
            command=command,
            command_at=command_at,
            args=list_at(args),
            args_at=args_at,
            env={
                str(name): ((*path, "env", str(name)), value)
                for path, source in reversed(sources)
                for name, value in mapping_at(source, "env").items()
            },
        )


def names_program(place: Mapping[str, object]) -> bool:
    """Whether the role, or the request itself, says what to run rather than taking another's."""
    return "image" in place or "python_package" in place


def candidate_documents(document: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
    """The documents of the candidates, each without fallbacks: the request itself, then each fallback applied to it."""
    own = without_fallbacks(document)
    return (own, *(with_patch(own, patch) for _, patch in iter_fallbacks(document)))


def without_fallbacks(document: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key != FALLBACKS}


def placeable(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document without what no fallback changes and no region or machine decides: its words, data and parameters.

    A request with thousands of values and eight fallbacks is checked whole only once.
    """
    own = {key: value for key, value in document.items() if key not in (FALLBACKS, *_UNMOVED)}
    cluster = mapping_at(document, "cluster")
    if cluster:
        own["cluster"] = {
            role: {key: value for key, value in pool.items() if key not in _UNMOVED}
            if role in ROLES and isinstance(pool, Mapping)
            else pool
            for role, pool in cluster.items()
        }
    return {**own, "tuning": {}} if "tuning" in document else own


def iter_fallbacks(document: Mapping[str, Any]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Each fallback that is a mapping, with its place in the list."""
    for index, patch in enumerate(list_at(document, FALLBACKS)[:MAX_FALLBACKS]):
        if isinstance(patch, Mapping):
            yield index, patch


def fallback_path(index: int) -> str:
    return json_path((FALLBACKS, index))


# Any: a JSON document.
def with_patch(document: object, patch: object) -> Any:
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
            result[key] = with_patch(result.get(key), value)
    return result
