"""The Python environments of images: a view of the stack's own where that has what an image needs, else one that uv makes.

An environment is kept by the content that it was made from, so that the next job, and the next stack, find it ready.
It is made where it stays, because scripts in it name their interpreter by its full path; a file says that it is whole.

The stack's own packages come first, because the examples and most first tries need no more. Images are not built:
that needs privileges and minutes, and `--runtime container` runs built ones.
"""

import asyncio
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import distribution, distributions
from pathlib import Path

from uv import find_uv_bin

from trainstack.jobs.images.dockerfile import ImageError
from trainstack.jobs.images.indexes import settings_of_uv
from trainstack.jobs.images.installs import Install
from trainstack.jobs.images.programs import PoolProgram, ProgramError
from trainstack.jobs.images.recipes import Recipe, files_of
from trainstack.jobs.images.views import IN_EVERY_IMAGE, link_packages, make_environment, site_packages
from trainstack.process.output import OutputStream
from trainstack.process.processes import SYSTEM_PATH, ProcessGuard

MAX_KEPT = 8
"""Environments that a stack finds when it starts."""
INSTALL_LIMIT_S = 1800.0

_NO_CHANGES = "Would make no changes"
_READY, _SOURCES = "ready", ".sources"
_LAST_LINES = 20
_LINE_CHARACTERS = 500
_GRACE_S = 2.0
_CHECK_LIMIT_S = 60.0
_CREDENTIALS = re.compile(r"(?<=://)[^/@\s]+@")
_UNREACHABLE = ("error sending request", "dns error", "failed to fetch", "network connectivity is disabled")
_NOT_FOUND = "was not found in the package registry"
_REFUSED = ("401 unauthorized", "403 forbidden")
_LOG_IN = (
    "A package index asks for a name and a password. Start the stack with them in a .netrc, in UV_INDEX_<NAME>_PASSWORD, or in a "
    "keyring and UV_KEYRING_PROVIDER=subprocess. In the cloud, pip needs a .netrc or a keyring in the image."
)
_WAY_OUT = (
    "The package index cannot be reached. Do one of these:",
    "- Name one that can be, or a folder of wheels, where it is named now: in {}, else in pip.conf, PIP_INDEX_URL or PIP_FIND_LINKS.",
    "- Start the stack with UV_OFFLINE=1: uv chooses from what it has downloaded before.",
    "- Install the packages into the stack's own environment, which is used where it has all of them.",
)


Say = Callable[..., Awaitable[object]]
"""Writes a line to a job's log: its text, and its severity if it is not `INFO`."""


class Environments:
    """The environments below one folder, for one event loop. Several jobs may ask at once: one makes what others wait for."""

    def __init__(self, folder: Path, guard: ProcessGuard) -> None:
        """Remove what an earlier stack left half-made, and all but the MAX_KEPT environments that were used last."""
        self._folder, self._guard = folder, guard
        self._making: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._compiled: set[Path] = set()
        ready = {mark.parent: mark.stat().st_mtime for mark in folder.glob(f"*/{_READY}")}
        kept = sorted(ready, key=ready.__getitem__)[-MAX_KEPT:]
        _remove([path for path in folder.glob("*") if path not in kept])

    async def prepare(self, programs: Mapping[int, PoolProgram], say: Say) -> Mapping[int, PoolProgram]:
        """The programs, each with the interpreter of an environment with what its image needs. Making one may take minutes.

        Cancelling it stops the installation and removes its files.

        Raises:
            ProgramError: the packages cannot be installed; the message has the end of what uv said.
        """
        recipes = {pool: program.recipe for pool, program in programs.items() if program.recipe is not None}
        omissions = [note for recipe in recipes.values() for note in recipe.omissions()]
        await _say_once(say, omissions, "WARNING")
        prepared, notes = dict(programs), list[str]()
        for pool, recipe in recipes.items():
            python = await self._interpreter(recipe, say)
            notes += await asyncio.to_thread(_differences, recipe, python)
            prepared[pool] = replace(prepared[pool], python=python)
        await _say_once(say, notes)
        return prepared

    async def _interpreter(self, recipe: Recipe, say: Say) -> Path:
        """The interpreter of an environment with what the recipe asks for."""
        is_met = await asyncio.to_thread(_is_met_by_own, recipe)
        folder = self._folder / (_name_of_view(recipe) if is_met or recipe.at_hand else recipe.key)
        if self._making[folder.name].locked():
            await say(f"Another job makes {recipe.whose}'s Python environment; this one waits for it.")
        async with self._making[folder.name]:
            if not (folder / _READY).exists():
                await (
                    asyncio.to_thread(_link, recipe, folder) if is_met else self._make(recipe, folder, say)
                )
            os.utime(folder / _READY)
        if not is_met:
            self._compile(folder)
        return folder / "bin" / "python"

    def _compile(self, folder: Path) -> None:
        """Compile the environment's packages beside the jobs that use it, so that not every replica has to.

        uv leaves no bytecode, and replicas may not write it. Nothing of the packages runs. The next stack continues.
        """
        if folder not in self._compiled:
            self._compiled.add(folder)
            command = [sys.executable, "-I", "-S", "-m", "compileall", "-qq", str(site_packages(folder))]
            self._guard.start(["nice", "-n", "19", *command], env={"PATH": SYSTEM_PATH})

    async def _make(self, recipe: Recipe, folder: Path, say: Say) -> None:
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
        await asyncio.to_thread(link_packages, folder, recipe.at_hand, only_metadata=True)
        python = str(folder / "bin" / "python")
        into = ["pip", "install", "--python", python, *uv.options]
        if brought := (*recipe.base.needed, *recipe.base.more):
            await uv.run([*into, *brought], f"what {recipe.base.name} brings")
        for number, install in enumerate(recipe.installs):
            uv.cwd = await asyncio.to_thread(_working_directory, install, scratch / str(number))
            await uv.run([*into, *install.arguments], install.line, install)
        await asyncio.to_thread(link_packages, folder, [*IN_EVERY_IMAGE, *recipe.at_hand])
        (folder / _READY).touch()


def _name_of_view(recipe: Recipe) -> str:
    """Another one after each installation into the stack's own environment."""
    packages = Path(
        str(distribution("uv").locate_file(""))
    )  # Debian's Python has no site-packages at its prefix
    return f"{recipe.key}-{packages.stat().st_mtime_ns:x}"


def _link(recipe: Recipe, folder: Path) -> None:
    _remove([folder])
    make_environment(folder)
    link_packages(folder, recipe.requirements)
    (folder / _READY).touch()


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
        self._last: deque[str] = deque(maxlen=_LAST_LINES)

    async def run(self, arguments: Sequence[str], what: str, install: Install | None = None) -> None:
        """Raises `ProgramError` when uv fails to install `what`."""
        self._last.clear()
        self._install, self._error = install, ""
        environment = {**self._environment, **(_indexes(install, self._environment) if install else {})}
        code = await self._wait(arguments, environment)
        if code and any(_NOT_FOUND in line for line in self._last):
            said = [*self._last]
            # uv says that an index refuses it only where it asks one after the other.
            await self._wait([*arguments, "--dry-run"], {**environment, "UV_INDEX_STRATEGY": "first-index"})
            if not self._shows(_REFUSED):
                self._last = deque(said, maxlen=_LAST_LINES)
        if code:
            raise ProgramError(self._failure(what))

    async def _wait(self, arguments: Sequence[str], environment: Mapping[str, str]) -> int:
        child = self._guard.start(
            [find_uv_bin(), *arguments], env=environment, cwd=self.cwd, on_lines=self._hear
        )
        try:
            return await child.wait()
        except asyncio.CancelledError:
            await child.stop(grace_s=_GRACE_S)
            raise

    def _shows(self, signs: Sequence[str]) -> bool:
        return any(sign in line.lower() for line in self._last for sign in signs)

    async def _hear(self, _stream: OutputStream, lines: list[bytes]) -> None:
        for line in lines:
            text = line.decode("utf-8", "replace").rstrip()
            for path in self._install.files if self._install else ():  # only this machine knows its folder
                text = text.replace(str(path), path.name)
            text = _CREDENTIALS.sub("***@", text)[:_LINE_CHARACTERS]
            if not text or text.startswith("Using Python "):
                continue
            self._last.append(text)
            self._error = self._error or (text if text.startswith("error: ") else "")
            await self._say(text)

    def _failure(self, what: str) -> str:
        is_of_script = self._install is not None and self._install.is_of_script
        whose = "script" if is_of_script else "image"
        lines = list(self._last)
        if self._error not in lines:  # a build that failed has said much since
            lines[:0] = [self._error, "…"]
        way_out: list[str] = []
        if self._shows(_REFUSED):
            way_out = [_LOG_IN, "uv printed:"]
        elif self._shows(_UNREACHABLE):
            where = "requirements.txt" if is_of_script else "the line of the Dockerfile"
            way_out = [*(line.format(where) for line in _WAY_OUT), "uv printed:"]
        # The repair comes first: some readers cut a long reason.
        message = (
            f"The {whose}'s packages cannot be installed here: uv failed at {what}.",
            *way_out,
            *lines,
            self._last_word,
        )
        return "\n".join(filter(None, message))


def _is_met_by_own(recipe: Recipe) -> bool:
    """Whether the stack's own environment has all requested packages, as uv sees it. Asks no index."""
    if any(install.tree is not None for install in recipe.installs):
        return False
    if not (recipe.installs or recipe.base.needed):
        return True
    settings = settings_of_uv(os.environ, home=Path.home())
    words = [*recipe.base.needed, *(word for install in recipe.installs for word in install.arguments)]
    command = [find_uv_bin(), "pip", "install", "--dry-run", "--offline", "--python", sys.executable, *words]
    try:
        done = subprocess.run(
            command,
            env=settings.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=_CHECK_LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0 and _NO_CHANGES in done.stderr


def _differences(recipe: Recipe, python: Path) -> list[str]:
    path = [str(site_packages(python.parent.parent))]

    def version_of(name: str) -> str | None:
        return next((distribution.version for distribution in distributions(name=name, path=path)), None)

    return list(recipe.differences(version_of))


def _indexes(install: Install, environment: Mapping[str, str]) -> dict[str, str]:
    """Variables, because URLs may hold passwords, and everyone on the machine can read a command line."""
    variables = {"UV_DEFAULT_INDEX": install.default_index} if install.default_index else {}
    if install.indexes:
        variables["UV_INDEX"] = " ".join([*install.indexes, environment.get("UV_INDEX", "")])
    return variables


def _working_directory(install: Install, root: Path) -> Path:
    """The folder to install in, below a copy of the image's files where one of them is installed.

    They are copied because a build writes beside its sources.
    """
    folder = root / install.workdir.lstrip("/")
    folder.mkdir(parents=True)
    for relative, path in files_of(install.tree) if install.tree is not None else ():
        copy = root / relative
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, copy)
    return folder
