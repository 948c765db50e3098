"""What a Dockerfile's RUN lines install with pip or uv, in words that uv takes too; `uv sync` is in `syncs.py`.

Source: https://pip.pypa.io/en/stable/cli/pip_install/ and https://docs.astral.sh/uv/pip/compatibility/, read 2026-11.
"""

import argparse
import functools
import re
from dataclasses import dataclass
from pathlib import Path

from trainmaster.local.jobs.images.arguments import parser_of
from trainmaster.local.jobs.images.commands import Command, commands_of
from trainmaster.local.jobs.images.dockerfile import Image
from trainmaster.local.jobs.images.layout import Node, find_in_turn
from trainmaster.local.jobs.images.requirements import lines_of, names_a_path
from trainmaster.local.jobs.images.syncs import Sync, sync_of

_PIP = re.compile(r"(.*/)?pip(3(\.\d+)?)?")
_PIP_WORK, _FILE_WORK = 300, 1000  # units of dockerfile.Work
_ARCHIVES = (".whl", ".tar.gz", ".zip")
_INSTALLERS_OWN = re.compile(r"(pip|wheel|uv)\s*([=<>~!].*)?")
"""What `pip install --upgrade pip` is for has no use in an environment that uv makes."""

_QUIET = (
    ("-U", "--upgrade"),
    ("--user",),
    ("--system",),
    ("--disable-pip-version-check",),
    ("--no-input",),
    ("--no-warn-script-location",),
    ("--prefer-binary",),
    ("--force-reinstall", "--ignore-installed", "-I"),
    ("--break-system-packages",),
    ("--use-pep517",),
    ("--no-clean",),
)
_QUIET_VALUES = ("--default-timeout", "--retries", "--root-user-action", "--timeout")
"""Options that change nothing in an environment that is new and the image's own."""
_PASSED_ON = {
    "--pre": "--prerelease=allow",
    "--no-index": "--no-index",
    "--no-deps": "--no-deps",
    "--require-hashes": "--require-hashes",
    "--no-build-isolation": "--no-build-isolation",
}
_PASSED_ON_VALUES = {
    "--index-strategy": "--index-strategy",
    "--only-binary": "--only-binary",
    "--no-binary": "--no-binary",
    "--trusted-host": "--allow-insecure-host",
}


@dataclass(frozen=True, kw_only=True)
class Project:
    """A folder or archive of the image, `extras` as `[a,b]`."""

    node: Node
    extras: str = ""


@dataclass(frozen=True, kw_only=True)
class Install:
    """One `pip install`, its paths on this machine.

    Attributes:
        requirements: what is named on the line itself.
        files: requirement files.
        constraints: constraint files.
        projects: folders and archives of the image.
        links: folders of the image with archives to choose from (`--find-links`).
        options: for `uv pip install`, package indexes excepted.
        default_index: in place of the user's own; empty where none is named.
        indexes: beside the user's own.
        workdir: the directory that it runs in, where a requirement file names something in it.
        named: what a message calls it; empty where it is called by what it installs.
        is_of_script: whether it is what a script's requirements.txt asks for, and not the image's.
    """

    requirements: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()
    constraints: tuple[Path, ...] = ()
    projects: tuple[Project, ...] = ()
    links: tuple[Node, ...] = ()
    options: tuple[str, ...] = ()
    default_index: str = ""
    indexes: tuple[str, ...] = ()
    workdir: Node | None = None
    named: str = ""
    is_of_script: bool = False

    @property
    def nodes(self) -> list[Node]:
        """All that it takes from the image beside requirement and constraint files."""
        here = [] if self.workdir is None else [self.workdir]
        return [*(project.node for project in self.projects), *self.links, *here]

    @property
    def files_read(self) -> list[Path]:
        """Requirement and constraint files."""
        return [*self.files, *self.constraints]

    @property
    def words(self) -> tuple[object, ...]:
        """All that it is made of beside files."""
        extras = [project.extras for project in self.projects]
        return self.requirements, self.options, self.default_index, self.indexes, extras

    @property
    def is_empty(self) -> bool:
        return not (self.requirements or self.files or self.projects)


Installation = Install | Sync


def installs_of(image: Image) -> tuple[list[Installation], list[str]]:
    """What an image installs, in order, and the RUN lines whose commands are not all done here, as `RUN commands`.

    A command that cannot be understood is one that is not done; so is an install of what no COPY brings.

    Raises:
        ImageError: a requirement file or a lock cannot be read, or is too large.
    """
    installs: list[Installation] = []
    not_done: list[str] = []
    for run in image.runs:
        left = []
        for command in commands_of(run):
            found = sync_of(command) or _install(command)
            if found is None:
                left.append(str(command))
            elif isinstance(found, Sync) or not found.is_empty:
                installs.append(found)
        if left:
            not_done.append(f"RUN {' && '.join(left)}")
    return installs, not_done


def _installer(command: Command) -> int | None:
    """How many words there are before pip's own arguments; None for any other command."""
    words = command.words
    if _PIP.fullmatch(words[0]):
        before = 1
    elif command.runs_python and words[1:3] == ("-m", "pip"):
        before = 3
    elif command.runs_uv and words[1:2] == ("pip",):
        before = 2
    else:
        return None
    while before < len(words) and words[before].startswith("-"):  # pip's options may stand before its verb
        before += 1
    return before + 1 if words[before : before + 1] == ("install",) else None


def _file(path: str, image: Image) -> Path | None:
    found = find_in_turn(image, path)
    return found if isinstance(found, Path) and found.is_file() else None


def _install(command: Command) -> Install | None:
    """None for an install into another environment, or one that uses what is not understood or not there."""
    before, words, image = _installer(command), command.before_redirection, command.image
    if before is None or words is None:
        return None
    image.work.spend(
        _PIP_WORK + len(words) ** 2 // 40
    )  # argparse looks at what is left of the words for each option
    try:
        asked, unknown = _parser().parse_known_intermixed_args(words[before:])
    except argparse.ArgumentError:
        return None
    paths = [word for word in asked.packages if _is_path(word)]
    projects = [_project(word, image) for word in [*paths, *asked.editable]]
    files = [_file(path, image) for path in asked.requirement]
    constraints = [_file(path, image) for path in asked.constraint]
    links = [find_in_turn(image, path) for path in asked.find_links if "://" not in path]
    urls = [word for url in asked.find_links if "://" in url for word in ("--find-links", url)]
    if unknown or None in (*projects, *files, *constraints, *links):
        return None
    with_paths = [path for path in files if path and _names_paths(path, image)]
    named = (word for word in asked.packages if not _is_path(word) and not _INSTALLERS_OWN.fullmatch(word))
    return Install(
        requirements=tuple(named),
        files=tuple(path for path in files if path),
        constraints=tuple(path for path in constraints if path),
        projects=tuple(project for project in projects if project),
        links=tuple(node for node in links if node is not None),
        options=(*asked.options, *urls),
        default_index=asked.default_index,
        indexes=tuple(asked.indexes),
        workdir=find_in_turn(image, ".") if with_paths else None,
    )


def _names_paths(path: Path, image: Image) -> bool:
    """Whether a requirement file does."""
    lines = list(lines_of(path))
    image.work.spend(_FILE_WORK + len(lines) + sum(map(len, lines)) // 4)
    return any(map(names_a_path, lines))


def _is_path(word: str) -> bool:
    return "://" not in word and ("/" in word or word.startswith(".") or word.endswith(_ARCHIVES))


def _project(word: str, image: Image) -> Project | None:
    path, bracket, extras = word.partition("[")
    node = find_in_turn(image, path)
    return None if node is None else Project(node=node, extras=bracket + extras)


@functools.cache
def _parser() -> argparse.ArgumentParser:
    """Of pip's options, as far as they are done here."""
    parser = parser_of(flags=_PASSED_ON, values=_PASSED_ON_VALUES, quiet=_QUIET, quiet_values=_QUIET_VALUES)
    parser.add_argument("packages", nargs="*")
    for names in (
        ("-r", "--requirement", "--requirements"),
        ("-c", "--constraint", "--constraints"),
        ("-e", "--editable"),
        ("-f", "--find-links"),
    ):
        dest = names[1].removeprefix("--").replace("-", "_")
        parser.add_argument(*names, action="append", default=[], dest=dest)
    return parser
