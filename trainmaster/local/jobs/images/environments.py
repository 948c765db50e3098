"""The Python environments of images: the stack's own where it has what an image needs, else one that uv makes.

An environment is kept by the content that it was made from, so that the next job, and the next stack, find it ready.
It is made where it stays, because scripts in it name their interpreter by its full path; a file says that it is whole.

The stack's own environment comes first, because the examples and most first tries need no more. Images are not built:
that needs privileges and minutes, and `--runtime container` runs built ones.
"""

import asyncio
import os
import re
import shlex
import shutil
import sys
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Protocol

from uv import find_uv_bin

from trainmaster.local.jobs.images.dockerfile import ImageError
from trainmaster.local.jobs.images.indexes import settings_of_uv
from trainmaster.local.jobs.images.installs import Install, Installation
from trainmaster.local.jobs.images.layout import Node
from trainmaster.local.jobs.images.package_runner import by_name, site_packages
from trainmaster.local.jobs.images.programs import Program, ProgramError
from trainmaster.local.jobs.images.recipes import Recipe, files_of
from trainmaster.local.jobs.images.syncs import Sync
from trainmaster.local.process.output import Stream
from trainmaster.local.process.processes import ProcessGuard

MAX_KEPT = 8
"""Environments of one stack; the one that was not used for longest goes first."""
INSTALL_LIMIT_S = 1800.0
MAX_LINES = 1000
"""Of uv's output in a job's log."""

_READY, _SOURCES, _REMOVED = "ready", ".sources", ".removed"
_LAST_LINES = 20
_LINE_CHARACTERS = 500
_GRACE_S = 2.0
_SYNC_INTO = ("--inexact", "--no-editable")
"""A base image's packages stay, and the copy of the project goes."""
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")
_UNREACHABLE = ("error sending request", "dns error", "failed to fetch", "network connectivity is disabled")
_WAY_OUT = (
    "The package index cannot be reached. Do one of these:",
    "- Name one that can be, or a folder of wheels, where it is named now: in {}, else in pip.conf, PIP_INDEX_URL or PIP_FIND_LINKS.",
    "- Start the stack with UV_OFFLINE=1: uv chooses from what it has downloaded before.",
    "- Install the packages into the stack's own environment, which is used where it has all of them.",
)


class Say(Protocol):
    """Writes a line to a job's log."""

    def __call__(self, text: str, severity: str = "INFO") -> Awaitable[object]: ...


@dataclass(frozen=True, kw_only=True)
class Held:
    """Programs with the interpreters of their environments, which are not removed before `release`."""

    programs: Mapping[int, Program]
    release: Callable[[], None]


class Environments:
    """The environments below one folder, for one event loop. Several jobs may ask at once: one makes what others wait for."""

    def __init__(self, folder: Path, guard: ProcessGuard) -> None:
        """Remove what an earlier stack left half-made."""
        self._folder, self._guard = folder, guard
        self._making: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._users: Counter[str] = Counter()
        _remove(self._superfluous(at_most=MAX_KEPT))

    async def acquire(self, programs: Mapping[int, Program], say: Say) -> Held:
        """The programs, each in an environment with what its image needs. Making one may take minutes.

        Cancelling it stops the installation and removes its files.

        Raises:
            ProgramError: the packages cannot be installed; the message has the end of what uv said.
        """
        recipes = {pool: each.recipe for pool, each in programs.items() if each.recipe is not None}
        omissions = [note for recipe in recipes.values() for note in recipe.omissions()]
        await _say_once(say, omissions, "WARNING")
        keys: list[str] = []
        found, notes = dict(programs), list[str]()
        try:
            for pool, recipe in recipes.items():
                python, have = await self._ready(recipe, say, keys)
                notes += recipe.differences(have)
                found[pool] = replace(found[pool], python=python)
            await _say_once(say, notes)
        except BaseException:
            self._release(keys)
            raise
        return Held(programs=found, release=lambda: self._release(keys))

    def _release(self, keys: list[str]) -> None:
        self._users.subtract(keys)
        keys.clear()

    async def _ready(
        self, recipe: Recipe, say: Say, keys: list[str]
    ) -> tuple[Path, Mapping[str, Distribution]]:
        if recipe.needs == () and not recipe.base.more:  # spares listing what is installed
            return Path(sys.executable), {}
        own = await asyncio.to_thread(lambda: by_name(distributions()))
        if recipe.is_met_by(own):
            return Path(sys.executable), own
        folder = self._folder / recipe.key
        keys.append(recipe.key)
        self._users[recipe.key] += 1
        if self._making[recipe.key].locked():
            await say(f"Another job makes {recipe.whose}'s Python environment; this one waits for it.")
        async with self._making[recipe.key]:
            if not (folder / _READY).exists():
                await self._make(recipe, folder, say)
            os.utime(folder / _READY)
        python = folder / "bin" / "python"
        have = await asyncio.to_thread(lambda: by_name(distributions(path=[str(site_packages(python))])))
        return python, have

    async def _make(self, recipe: Recipe, folder: Path, say: Say) -> None:
        await asyncio.to_thread(_remove, self._superfluous(at_most=MAX_KEPT - 1))
        await say(f"Making {recipe.whose}'s Python environment; it is kept for the next job.")
        scratch = folder.with_suffix(_SOURCES)
        try:
            async with asyncio.timeout(INSTALL_LIMIT_S):
                await self._fill(recipe, folder, scratch, say)
        except TimeoutError as error:
            raise ProgramError(
                f"{recipe.whose.capitalize()}'s packages were not installed within {INSTALL_LIMIT_S:g} s."
            ) from error
        except (ImageError, OSError) as error:
            raise ProgramError(
                f"{recipe.whose.capitalize()}'s Python environment cannot be made: {error}"
            ) from error
        finally:
            whole = (folder / _READY).exists()
            await asyncio.to_thread(_remove, [scratch] if whole else [scratch, folder])

    async def _fill(self, recipe: Recipe, folder: Path, scratch: Path, say: Say) -> None:
        await asyncio.to_thread(_remove, [folder, scratch])
        await asyncio.to_thread(scratch.mkdir, parents=True)
        uv = _Uv(guard=self._guard, cwd=scratch, say=say, last_word=recipe.python_difference)
        await uv.run(["venv", "--quiet", "--python", sys.executable, str(folder)], "a new environment")
        python = str(folder / "bin" / "python")
        into = ["pip", "install", "--python", python, *uv.options]
        if brought := (*recipe.base.needed, *recipe.base.more):
            await uv.run([*into, *brought], f"what {recipe.base.name} brings")
        for number, install in enumerate(recipe.installs):
            uv.cwd = scratch / str(number)
            if isinstance(install, Sync):
                await asyncio.to_thread(_copied, install.project, uv.cwd)
                arguments = ["sync", *_SYNC_INTO, "--python", python, *uv.options, *install.options]
            else:
                arguments = [*into, *await asyncio.to_thread(_arguments, install, uv.cwd)]
            await uv.run(arguments, _named(install), _variables(install, folder), _renamed(install))
        if not (own_uv := folder / "bin" / "uv").exists():
            own_uv.symlink_to(find_uv_bin())  # for `uv run` as the image's program
        (folder / _READY).touch()

    def _superfluous(self, *, at_most: int) -> list[Path]:
        """What is half-made, and what was used longest ago until `at_most` are left: out of the way, to be removed."""
        entries = list(self._folder.iterdir()) if self._folder.is_dir() else []
        free = [entry for entry in entries if not self._users[entry.stem]]
        ready = [entry for entry in free if not entry.suffix and (entry / _READY).exists()]
        ready.sort(key=lambda entry: (entry / _READY).stat().st_mtime)
        busy = {entry.stem for entry in entries} - {entry.stem for entry in free}
        oldest = ready[: max(0, len(ready) + len(busy) - at_most)]
        # Renamed at once, so that no job finds one whole that is being removed.
        removed = [entry.rename(entry.with_suffix(_REMOVED)) for entry in oldest]
        return [*removed, *(entry for entry in free if entry not in ready)]


def _remove(paths: Sequence[Path]) -> None:
    for path in paths:
        shutil.rmtree(path, ignore_errors=True)


async def _say_once(say: Say, notes: Sequence[str], severity: str = "INFO") -> None:
    for note in dict.fromkeys(notes):
        await say(note, severity)


class _Uv:
    """Runs uv, its output going to a job's log."""

    def __init__(self, *, guard: ProcessGuard, cwd: Path, say: Say, last_word: str | None = None) -> None:
        """`last_word` is the last line of what is raised when uv fails."""
        settings = settings_of_uv(os.environ, home=Path.home())
        self.options = settings.options
        self._environment = settings.environment
        self.cwd = cwd
        self._guard, self._say, self._last_word = guard, say, last_word
        self._error = ""
        self._said = 0
        self._renamed: Mapping[str, str] = {}
        self._last: deque[str] = deque(maxlen=_LAST_LINES)

    async def run(
        self,
        arguments: Sequence[str],
        what: str,
        more: Mapping[str, str] = {},
        renamed: Mapping[str, str] = {},
    ) -> None:
        """Raises `ProgramError` when uv fails to install `what`.

        `more` are variables; `renamed` are the files of a script by their paths here, as the script's author calls them.
        """
        self._last.clear()
        self._error = ""
        self._renamed = renamed
        environment = {**self._environment, **more}
        if "UV_INDEX" in more:
            environment["UV_INDEX"] += f" {self._environment.get('UV_INDEX', '')}"
        child = self._guard.start(
            [find_uv_bin(), *arguments], env=environment, cwd=self.cwd, on_lines=self._hear
        )
        try:
            code = await child.wait()
        except asyncio.CancelledError:
            await child.stop(grace_s=_GRACE_S)
            raise
        if code:
            raise ProgramError(self._failure(what))

    async def _hear(self, _stream: Stream, lines: list[bytes]) -> None:
        for line in lines:
            text = line.decode("utf-8", "replace").rstrip()
            for path, name in self._renamed.items():
                text = text.replace(path, name)
            text = _CREDENTIALS.sub("***@", text)[:_LINE_CHARACTERS]
            if not text or text.startswith("Using Python "):
                continue
            self._last.append(text)
            self._error = self._error or (text if text.startswith("error: ") else "")
            if self._said < MAX_LINES:
                self._said += 1
                await self._say(text)

    def _failure(self, what: str) -> str:
        is_of_script = bool(self._renamed)
        whose = "script" if is_of_script else "image"
        lines = list(self._last)
        if self._error not in lines:  # a build that failed has said much since
            lines[:0] = [self._error, "…"]
        way_out: list[str] = []
        if any(sign in line.lower() for line in self._last for sign in _UNREACHABLE):
            where = "requirements.txt" if is_of_script else "the line of the Dockerfile"
            way_out = [*(line.format(where) for line in _WAY_OUT), "uv printed:"]
        # The repair comes first: some readers cut a long reason.
        said = (
            f"The {whose}'s packages cannot be installed here: uv failed at {what}.",
            *way_out,
            *lines,
            self._last_word,
        )
        return "\n".join(filter(None, said))


def _variables(install: Installation, folder: Path) -> dict[str, str]:
    """Indexes are variables because their URLs may hold passwords, and everyone on the machine can read a command line."""
    found = {"UV_PROJECT_ENVIRONMENT": str(folder), "UV_PYTHON_DOWNLOADS": "never"}
    if install.default_index:
        found["UV_DEFAULT_INDEX"] = install.default_index
    if install.indexes:
        found["UV_INDEX"] = " ".join(install.indexes)
    return found


def _renamed(install: Installation) -> dict[str, str]:
    """The files of a script's requirements by their paths, which only this machine knows."""
    if isinstance(install, Sync) or not install.is_of_script:
        return {}
    return {str(path): path.name for path in install.files}


def _named(install: Installation) -> str:
    if isinstance(install, Sync):
        return f"`{shlex.join(['uv', 'sync', *install.options])}`"
    if install.named:
        return install.named
    words = [*install.requirements, *(f"-r {path.name}" for path in install.files)]
    words += [f"the package of the source tree{project.extras}" for project in install.projects]
    return _CREDENTIALS.sub("***@", ", ".join(words))


def _arguments(install: Install, cwd: Path) -> list[str]:
    """For `uv pip install` in `cwd`. What it may build is copied there first: a build writes beside its sources."""
    cwd.mkdir() if install.workdir is None else _copied(install.workdir, cwd)
    words = [*install.options, *install.requirements]
    words += [word for path in install.files for word in ("--requirement", str(path))]
    words += [word for path in install.constraints for word in ("--constraint", str(path))]
    for number, project in enumerate(install.projects):
        words.append(f"{_copied(project.node, cwd.with_suffix(f'.p{number}'))}{project.extras}")
    for number, node in enumerate(install.links):
        words += ["--find-links", str(_copied(node, cwd.with_suffix(f".l{number}")))]
    return words


def _copied(node: Node, target: Path) -> Path:
    """The copy: the folder `target`, or a file of the same name in it."""
    target.mkdir(parents=True)
    for relative, path in files_of(node):
        copy = target / (path.name if relative == Path() else relative)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)
    return target / node.name if isinstance(node, Path) and node.is_file() else target
