"""Requirements that a source tree declares in requirements.txt or pyproject.toml and no RUN line installs.

Source: https://packaging.python.org/en/latest/specifications/pyproject-toml/, read 2026-11.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import canonicalize_name

from trainmaster.local.jobs.images.bases import Base
from trainmaster.local.jobs.images.dockerfile import Image, ImageError
from trainmaster.local.jobs.images.installs import Install, Installation
from trainmaster.local.jobs.images.layout import find_in_turn
from trainmaster.local.jobs.images.requirements import lines_of, names_a_path, parse_toml, requirement_of

REQUIREMENTS, PROJECT = "requirements.txt", "pyproject.toml"
MAX_PROJECT_BYTES = 256 * 1024
MAX_NAMES = 8
"""Of packages in one note."""

_MAX_LINE = 200
_BY_NAME = "`RUN pip install …` with the names that its Python packages have on PyPI"
_EXPORTED = "`RUN pip install -r requirements.txt` with the file that `{}` writes"
_INSTEAD = {
    "poetry": f"`RUN pip install .`, which builds the project with Poetry's backend, or {_EXPORTED.format('poetry export')}",
    "pdm": _EXPORTED.format("pdm export"),
    "pipenv": _EXPORTED.format("pipenv requirements"),
    "conda": _BY_NAME,
    "mamba": _BY_NAME,
    "micromamba": _BY_NAME,
}
"""Repairs by the installers that are not run here."""
_VERBS = "add|create|install|sync|update"
_INSTALLER = re.compile(rf"(?<![-\w])(pip3?|uv|{'|'.join(_INSTEAD)}) [^&;|]{{0,100}}?\b(?:{_VERBS})\b")


@dataclass(frozen=True, kw_only=True)
class Declared:
    """What is installed because of such a file, if anything, and what the job's log says about it."""

    install: Install | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _File:
    """One of the two files.

    Attributes:
        lines: what the Dockerfile lacks to install it.
        is_whole: whether `requirements` are all that it asks for; else only its build backend can tell.
    """

    path: Path
    requirements: tuple[str, ...]
    lines: str
    is_whole: bool = True


def declared(image: Image, installs: Sequence[Installation], not_done: Iterable[str], base: Base) -> Declared:
    """The root's requirements.txt, else the dependencies of its pyproject.toml, where no RUN line installs any package.

    Where RUN lines install other packages, a note alone: what they leave out is missing from a built image too.

    Raises:
        ImageError: the file must be installed, and is too large or cannot be read.
    """
    if foreign := [word for line in not_done for word in _INSTALLER.findall(line)]:
        return Declared(notes=tuple(_not_run_here(foreign)))
    try:
        file = _file(image)
    except ImageError:
        if not installs:
            raise
        return Declared()  # nothing here needs it
    if file is None or any(file.path.name in run.command for run in image.runs):
        return Declared()
    if not installs and file.is_whole:
        return Declared(install=_install(file), notes=(_installed_here(file),) if file.requirements else ())
    return Declared(notes=tuple(_left_out(file, installs, base)))


def _not_run_here(words: Iterable[str]) -> Iterator[str]:
    for installer in dict.fromkeys(words):
        if installer in _INSTEAD:
            yield (
                f"The packages that {installer} installs may be missing here. Write {_INSTEAD[installer]}; or run the "
                "built image with --runtime container."
            )


def _file(image: Image) -> _File | None:
    if image.tree == Path("/"):  # a base image alone
        return None
    if (path := image.tree / REQUIREMENTS).is_file():
        lines = f"RUN pip install -r {REQUIREMENTS}"
        if find_in_turn(image, REQUIREMENTS) is None:
            lines = f"COPY {REQUIREMENTS} ./ and then {lines}"
        return _File(path=path, requirements=tuple(lines_of(path)), lines=lines)
    return _project(path) if (path := image.tree / PROJECT).is_file() else None


def _project(path: Path) -> _File | None:
    """None for a file that only sets tools, or declares no dependencies."""
    found = parse_toml(path, max_bytes=MAX_PROJECT_BYTES)
    names, dynamic = _names_at(path, found, "dependencies"), _names_at(path, found, "dynamic")
    of_poetry = _at(found, "tool", "poetry", "dependencies")
    has_more = isinstance(of_poetry, dict) and of_poetry.keys() - {"python"}
    is_whole = "dependencies" not in dynamic and not has_more
    if is_whole and not names:
        return None
    line = f"RUN {shlex.join(['pip', 'install', *names])}"
    if not is_whole or len(line) > _MAX_LINE:
        line = "RUN pip install ."
    return _File(path=path, requirements=names, lines=line, is_whole=is_whole)


def _names_at(path: Path, table: object, key: str) -> tuple[str, ...]:
    found = _at(table, "project", key)
    names = [] if found is None else found
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ImageError(f"{path}: project.{key} is {found!r:.100}; expected a list of strings")
    return tuple(names)


def _at(table: object, *keys: str) -> object:
    """The value below these keys, or None."""
    for key in keys:
        table = table.get(key) if isinstance(table, dict) else None
    return table


def _install(file: _File) -> Install:
    named = f"{file.path.name}, which no RUN line of the Dockerfile installs"
    if file.path.name == PROJECT:
        return Install(requirements=file.requirements, named=named)
    has_paths = any(map(names_a_path, file.requirements))
    return Install(files=(file.path,), workdir=file.path.parent if has_paths else None, named=named)


def _installed_here(file: _File) -> str:
    return (
        f"The packages of {file.path.name} are installed here although no RUN line of the Dockerfile installs them: the "
        f"image that `docker build` makes would lack them. Add to the Dockerfile: {file.lines}"
    )


def _left_out(file: _File, installs: Sequence[Installation], base: Base) -> Iterator[str]:
    """Nothing where a RUN line installs a project: only its build, or its lock, tells what that needs."""
    of_pip = [install for install in installs if isinstance(install, Install) and not install.projects]
    if len(of_pip) < len(installs):
        return
    known = {*_names(_lines(of_pip)), *_names((*base.needed, *base.more))}
    missing = [name for name in dict.fromkeys(_names(file.requirements)) if name not in known]
    shown = ", ".join(missing[:MAX_NAMES]) + (", …" if len(missing) > MAX_NAMES else "")
    if missing or not file.is_whole:
        yield (
            f"No RUN line of the Dockerfile installs {shown or 'the dependencies'} of {file.path.name}: programs may lack "
            f"them, here and in the image that `docker build` makes. Add to the Dockerfile: {file.lines}"
        )


def _lines(installs: Iterable[Install]) -> Iterator[str]:
    for install in installs:
        yield from install.requirements
        for path in install.files:
            yield from lines_of(path)


def _names(lines: Iterable[str]) -> Iterator[str]:
    """The distributions that lines name for this machine; other lines name none."""
    for line in lines:
        need = requirement_of(line)
        if need is not None and (need.marker is None or need.marker.evaluate()):
            yield canonicalize_name(need.name)
