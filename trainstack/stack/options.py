"""The options of a stack, all validated before anything starts."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from trainstack.events.backoff import Backoff
from trainstack.find import DEFAULT_STATE
from trainstack.injections import BadInjectionsError, InjectionPlan, plan_from
from trainstack.stack.errors import BadOptionsError

if TYPE_CHECKING:
    from trainstack.jobs.capacity import Quota
    from trainstack.vertex import IsolationChoice, RuntimeChoice

DEFAULT_PROJECT = "trainmaster-local"
DEFAULT_REGION = "us-central1"

# https://cloud.google.com/resource-manager/docs/creating-managing-projects
_PROJECT = re.compile(r"[a-z][a-z0-9-]{4,28}[a-z0-9]")
_PORTS = range(1, 65532)
_Parsed = TypeVar("_Parsed")


@dataclass(frozen=True, kw_only=True)
class StackOptions:
    """The options of a stack.

    `functions` is the staged source directory; None stages the product's own. `images` are the source
    trees of images by URI, in addition to the product's own. `port_base` is the first of five ports
    that must be free; None keeps the last stack's ports if they are free. `isolation`: whether the services refuse
    accounts what they have no permission for, and replicas are confined. `registry`: whether to run an image
    registry too. `tick_s` replaces the schedules' cron by an interval in seconds. `injections` take effect
    once everything has started. `quota` has each region's limits for jobs, none by default.
    """

    state: Path = DEFAULT_STATE
    functions: Path | None = None
    images: Mapping[str, Path] = field(default_factory=dict)
    project: str = DEFAULT_PROJECT
    region: str = DEFAULT_REGION
    port_base: int | None = None
    isolation: "IsolationChoice" = "enforced"
    runtime: "RuntimeChoice" = "process"
    registry: bool = False
    capacity: int | None = None
    grace_s: float = 5.0
    tick_s: float | None = None
    backoff: Backoff = field(default_factory=Backoff)
    injections: InjectionPlan = field(default_factory=InjectionPlan)
    quota: "Quota" = ()

    def check(self) -> None:
        """Raises `BadOptionsError` with every fault."""
        faults = [
            *image_faults(self.images),
            *_functions_faults(self.functions),
            *_number_faults(self),
        ]
        if not _PROJECT.fullmatch(self.project):
            faults.append(
                f"--project {self.project!r}: a project id has 6 to 30 lower-case letters, digits and hyphens, "
                "begins with a letter and does not end with a hyphen."
            )
        if faults:
            raise BadOptionsError("\n".join(faults))


def injections_of(path: Path) -> InjectionPlan:
    """The plan of injections in a file, JSON or YAML. Raises `BadOptionsError`."""
    return _read_file("--injections", path, plan_from, BadInjectionsError)


def quota_of(path: Path) -> "Quota":
    """The quotas in a file, JSON or YAML. Raises `BadOptionsError`."""
    # Here, so that `down` starts at once.
    from trainstack.errors import InvalidArgumentError
    from trainstack.jobs.capacity import quota_from

    return _read_file("--quota", path, quota_from, InvalidArgumentError)


def weather_of(path: Path) -> object:
    """The document in a file of weather, JSON or YAML, which the stack checks. Raises `BadOptionsError`."""
    return _read_file("FILE", path, lambda document: document, BadOptionsError)


def _read_file(
    flag: str, path: Path, parse: Callable[[object], _Parsed], refusal: type[Exception]
) -> _Parsed:
    import yaml  # so that `down` starts at once

    try:
        if not (path.is_file() or path.is_dir() or not path.exists()):  # a pipe may have no writer
            raise BadOptionsError(f"{flag} {str(path)!r}: not a regular file.")
        loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
        if loaded is None:
            raise BadOptionsError(f"{flag} {str(path)!r}: the file is empty.")
        return parse(loaded)
    except OSError as error:
        raise BadOptionsError(f"{flag} {str(path)!r}: {error.strerror or error}.") from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        raise BadOptionsError(f"{flag} {str(path)!r}: cannot read the file: {error}.") from error
    except refusal as error:
        raise BadOptionsError(f"{flag} {str(path)!r}:\n{error}") from error


def image_faults(images: Mapping[str, Path]) -> list[str]:
    """The faults of source trees that cannot provide an image."""
    from trainstack.jobs.images.dockerfile import ImageError, read_image  # so that `down` starts at once

    faults: list[str] = []
    for uri, tree in images.items():
        if not tree.is_dir():
            faults.append(f"Image {uri}: the directory {str(tree)!r} does not exist.")
            continue
        try:
            read_image(tree)
        except ImageError as error:
            faults.append(f"Image {uri}: {error}.")
    return faults


def _functions_faults(directory: Path | None) -> list[str]:
    if directory is None or (directory / "main.py").is_file():
        return []
    return [
        f"--functions {str(directory)!r}: the directory has no main.py; `make stage` creates such a directory in build/functions."
    ]


def _number_faults(options: StackOptions) -> list[str]:
    faults: list[str] = []
    if options.port_base is not None and options.port_base not in _PORTS:
        faults.append(
            f"--port-base {options.port_base}: expected a port from {_PORTS[0]} to {_PORTS[-1]}; the stack uses five ports from there on."
        )
    if options.tick_s is not None and not 0 < options.tick_s < float("inf"):
        faults.append(f"--tick-s {options.tick_s}: expected a number of seconds above 0.")
    if not 0 <= options.grace_s < float("inf"):
        faults.append(f"--grace-s {options.grace_s}: expected a number of seconds from 0.")
    if options.capacity is not None and options.capacity < 1:
        faults.append(f"--capacity {options.capacity}: expected at least one replica.")
    if not 0 <= options.backoff.min_s <= options.backoff.max_s <= 600:  # noqa: PLR2004  # Pub/Sub's longest pause
        faults.append(
            f"--retry-min-s {options.backoff.min_s}, --retry-max-s {options.backoff.max_s}: "
            "expected seconds from 0 to 600, the minimum not above the maximum."
        )
    return faults
