"""What `uv sync` installs: the project in the working directory, with the versions of its lock.

Source: https://docs.astral.sh/uv/concepts/projects/sync/ and https://docs.astral.sh/uv/reference/cli/#uv-sync,
read 2026-11.
"""

import argparse
import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from trainmaster.local.jobs.images.arguments import parser_of
from trainmaster.local.jobs.images.commands import Command
from trainmaster.local.jobs.images.dockerfile import Image
from trainmaster.local.jobs.images.layout import Node, find_in_turn
from trainmaster.local.jobs.images.requirements import parse_toml

PROJECT, LOCK = "pyproject.toml", "uv.lock"
MAX_LOCK_BYTES = 8 * 1024 * 1024
_SYNC_WORK = 300  # units of dockerfile.Work

_FLAGS = (
    "--all-extras", "--all-groups", "--all-packages", "--dev", "--frozen", "--locked", "--no-build-isolation",
    "--no-default-groups", "--no-dev", "--no-index", "--no-install-local", "--no-install-project", "--no-install-workspace",
    "--no-sources", "--only-dev",
)  # fmt: skip
_VALUES = (
    "--extra", "--group", "--index-strategy", "--no-extra", "--no-group", "--no-install-package", "--only-group", "--package",
    "--prerelease", "--resolution",
)  # fmt: skip
_QUIET = (
    ("--active",),
    ("--exact", "--inexact"),
    ("--no-editable",),
    ("--no-managed-python", "--managed-python", "--no-python-downloads"),
    ("--reinstall",),
)
_BY_VARIABLE = {
    f"UV_{flag.removeprefix('--').replace('-', '_').upper()}": flag
    for flag in ("--frozen", "--locked", "--no-default-groups", "--no-dev", "--no-install-project")
}
"""Options by the variables that set them, as ENV lines do."""
_TRUE = frozenset({"1", "true", "t", "yes", "y", "on"})


@dataclass(frozen=True, kw_only=True)
class Sync:
    """One `uv sync`, its paths on this machine.

    Attributes:
        project: the project's folder; of one that is not built, only its pyproject.toml and uv.lock.
        options: for `uv sync`, package indexes excepted.
        default_index: in place of the user's own; empty where none is named.
        indexes: beside the user's own.
    """

    project: Node
    options: tuple[str, ...] = ()
    default_index: str = ""
    indexes: tuple[str, ...] = ()

    @property
    def nodes(self) -> list[Node]:
        return [self.project]

    @property
    def files_read(self) -> list[Path]:
        return []

    @property
    def words(self) -> tuple[object, ...]:
        """All that it is made of beside files."""
        return "sync", self.options, self.default_index, self.indexes


def sync_of(command: Command) -> Sync | None:
    """None for any other command, one with an option that is not understood, and where no COPY brings pyproject.toml.

    Raises:
        ImageError: its uv.lock cannot be read, or is too large.
    """
    words = command.before_redirection
    if not command.runs_uv or words is None or words[1:2] != ("sync",):
        return None
    command.image.work.spend(_SYNC_WORK + len(words) ** 2 // 40)
    try:
        asked, unknown = _parser().parse_known_args(words[2:])
    except argparse.ArgumentError:
        return None
    project = None if unknown else _project(command.image, tuple(asked.options))
    if project is None:
        return None
    return Sync(
        project=project,
        options=(*_by_variables(command.image.env, asked.options), *asked.options),
        default_index=asked.default_index,
        indexes=tuple(asked.indexes),
    )


def _by_variables(env: Mapping[str, str], asked: Sequence[str]) -> Iterator[str]:
    for variable, flag in _BY_VARIABLE.items():
        if flag not in asked and env.get(variable, "").lower() in _TRUE:
            yield flag


def _project(image: Image, options: Sequence[str]) -> Node | None:
    """Only what matters, so that a change of a program does not make another environment."""
    folder, project, lock = find_in_turn(image, "."), find_in_turn(image, PROJECT), find_in_turn(image, LOCK)
    if not isinstance(project, Path) or not isinstance(lock, Path) or _builds(lock, options):
        return None if project is None else folder
    return {PROJECT: project, LOCK: lock}


def _builds(lock: Path, options: Sequence[str]) -> bool:
    """Whether the lock names packages that lie in the source tree, beside a project that is not installed itself."""
    found = parse_toml(lock, max_bytes=MAX_LOCK_BYTES)
    packages = found.get("package") if isinstance(found, dict) else None
    if not isinstance(packages, list):
        return True  # uv will say what is wrong with it
    return not all(
        _is_elsewhere(package, without_project="--no-install-project" in options) for package in packages
    )


def _is_elsewhere(package: object, *, without_project: bool) -> bool:
    source = package.get("source") if isinstance(package, dict) else None
    if not isinstance(source, dict):
        return False
    is_project = source.get("virtual") == "." or (without_project and source.get("editable") == ".")
    return is_project or any("://" in str(source.get(kind)) for kind in ("registry", "url", "git"))


@functools.cache
def _parser() -> argparse.ArgumentParser:
    return parser_of(
        flags={flag: flag for flag in _FLAGS}, values={name: name for name in _VALUES}, quiet=_QUIET
    )
