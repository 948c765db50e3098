"""What the roles of an unvalidated request run, and where the request says so.

`spec.py` says the same of a sound request; a test holds the two together.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from trainmaster.orchestrator.core.documents.unvalidated import Path, at, list_at, mapping_at, text_at

ROLES = ("chief", "workers", "parameter_servers", "evaluators")
"""The keys of a cluster that are roles, in the order of Vertex AI's worker pools."""
IMAGE = ("image",)
EXECUTOR_IMAGE = ("python_package", "executor_image")


@dataclass(frozen=True, kw_only=True)
class Running:
    """What one role runs, and the paths of the document that say so.

    `named_at` is the path of what names the image or packages: the request itself, the chief, or the role.
    `image` is the executor's where `is_package`. Of `env` each variable has its path and value.
    """

    role: str
    named_at: Path
    is_package: bool
    image: str | None
    args: Sequence[object]
    args_at: Path
    command_at: Path | None
    env: Mapping[str, tuple[Path, object]]


def roles_in(document: object) -> Iterator[tuple[str, Mapping[str, object]]]:
    """The roles that are there, in the order of the worker pools."""
    for role in ROLES:
        value = at(document, "cluster", role)
        if isinstance(value, Mapping):
            yield role, value


def places_in(document: object) -> Iterator[tuple[Path, Mapping[str, object]]]:
    """Every place that may name a program: the request itself, then its roles."""
    yield (), mapping_at(document)
    for role, value in roles_in(document):
        yield ("cluster", role), value


def images_in(document: object) -> Iterator[tuple[Path, str]]:
    """Every image that the request names, of containers and of packages' executors, with its path."""
    for here, place in places_in(document):
        for path in (IMAGE, EXECUTOR_IMAGE):
            image = text_at(place, *path)
            if image is not None:
                yield (*here, *path), image


def names_program(place: Mapping[str, object]) -> bool:
    """Whether the role, or the request itself, says what to run rather than taking another's."""
    return "image" in place or "python_package" in place


def running(document: object, role: str) -> Running:
    """What the role runs: its own program, or the chief's with the request's words where it has none."""
    here: Path = ("cluster", role)
    own = mapping_at(document, "cluster", role)
    sources: list[tuple[Path, Mapping[str, object]]] = [(here, own)]
    named_at = here
    if not names_program(own):
        sources.append(((), mapping_at(document)))
        chief = mapping_at(document, "cluster", "chief")
        named_at = ("cluster", "chief") if names_program(chief) else ()
    namer = at(document, *map(str, named_at))
    is_package = at(namer, "python_package") is not None
    env = {
        str(name): ((*path, "env", str(name)), value)
        for path, source in reversed(sources)
        for name, value in mapping_at(source, "env").items()
    }
    args_from = next(((path, source) for path, source in sources if "args" in source), (here, own))
    return Running(
        role=role,
        named_at=named_at,
        is_package=is_package,
        image=text_at(namer, *(EXECUTOR_IMAGE if is_package else IMAGE)),
        args=list_at(args_from[1], "args"),
        args_at=(*args_from[0], "args"),
        command_at=next(((*path, "command") for path, source in sources if "command" in source), None),
        env=env,
    )
