"""The packages that a project says it needs, by the first of several files that say so."""

import os
import re
import subprocess
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from packaging.dependency_groups import resolve_dependency_groups
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from trainmaster.client.errors import ClientRefused
from trainmaster.client.submission.project.root import ProjectRefused
from trainmaster.client.terminal import one_line
from trainmaster.orchestrator.core.documents.faults import listed
from trainmaster.orchestrator.core.documents.values import at, list_at, mapping_at, text_at
from trainmaster.orchestrator.core.requests.checks.secrets import TOKEN_FORMATS

PROJECT_FILES = REQUIREMENTS, PYPROJECT, LOCK = "requirements.txt", "pyproject.toml", "uv.lock"
_HEADER = re.compile(r"(?m)^# /// script$\s(?P<content>(^#(| .*)$\s)+)^# ///$")
"""https://packaging.python.org/en/latest/specifications/inline-script-metadata"""
_NESTED = re.compile(r"(?:-r|--requirement)[= ]?\s*(\S+)")
_OPTION_OR_PATH = re.compile(r"-|.*[/$]|.*\.(whl|zip|tar\.gz)\b")
_UNREAD = {"setup.py": "install_requires", "setup.cfg": "install_requires"}
_UNREAD |= {"Pipfile": "", "environment.yml": "", "environment.yaml": ""}
_IMAGES_PYTHON = "3.11.99"  # the newest 3.11
_LINUX = {"sys_platform": "linux", "platform_system": "Linux"}
_EXPORT_S = 60.0


@dataclass(frozen=True, kw_only=True)
class Dependencies:
    """What is installed before the script starts.

    Attributes:
        source: which file says so, for people; empty if none does.
        lines: as in a requirements file.
        is_whole: whether the lines name all that is installed, also what packages need themselves.
        doubts: what is not as the project says, in words.
        packed: the requirements file to add to the archive; empty where a replica reads the root's own.
    """

    source: str = ""
    lines: tuple[str, ...] = ()
    is_whole: bool = False
    doubts: tuple[str, ...] = ()
    packed: str = ""

    @property
    def requirements(self) -> Mapping[str, Requirement]:
        """The requirements that count on a replica, by the names of packages."""
        found = dict[str, Requirement]()
        for line in self.lines:
            try:
                requirement = Requirement(line)
            except InvalidRequirement:  # an option, a path, or what pip alone takes
                continue
            if requirement.marker is None or requirement.marker.evaluate(_LINUX):
                found[canonicalize_name(requirement.name)] = requirement
        return found


def find_dependencies(
    script: Path, root: Path, extras: Sequence[str] = (), groups: Sequence[str] = ()
) -> Dependencies:
    """What the first of these says: its header, the nearest requirements.txt up to the root, uv.lock, pyproject.toml.

    With extras or groups, which only a project has, it is one of the last two.

    Raises:
        ClientRefused: a file is damaged or holds a secret, there is no such extra or group, or two of the files want
            versions of a package that exclude each other.
    """
    project, header = _parsed(_text(root / PYPROJECT), PYPROJECT), _header_of(script, root)
    python = text_at(header, "requires-python") or text_at(project, "project", "requires-python")
    (wanted,) = _checked_lines([f"python {python or ''}"], PYPROJECT)
    doubts = list[str]()
    if not Requirement(wanted).specifier.contains(_IMAGES_PYTHON):
        doubts.append(f"asks for {wanted}, and the image has Python 3.11: run it in an image of your own")
    of_files = [] if extras or groups else [*_of_files(script, root, header)]
    sources = [*of_files, *_of_project(root, project, extras, groups)]
    if not sources:
        there = [name for name in _UNREAD if (root / name).is_file()]
        unread = [name for name in there if _UNREAD[name] in _text(root / name)]
        is_dynamic = "dependencies" in list_at(project, "project", "dynamic")
        unread += [PYPROJECT] if is_dynamic or at(project, "tool", "poetry", "dependencies") else []
        doubts += [f"{name}'s packages are not read: export them to {REQUIREMENTS}" for name in unread]
        return Dependencies(is_whole=not unread, doubts=tuple(doubts))
    if faults := [fault for other in sources[1:] for fault in _contradictions(sources[0], other)]:
        raise ClientRefused(" ".join([*faults, "Make them agree, or remove the file that does not count."]))
    return replace(sources[0], doubts=tuple(doubts))


def _header_of(script: Path, root: Path) -> dict[str, Any]:
    header, name = _HEADER.search(script.read_text("utf-8", "replace")), script.relative_to(root).as_posix()
    content = re.sub(r"(?m)^# ?", "", header["content"]) if header else ""
    _check_secrets(content, name)
    return _parsed(content, name)


def _of_files(script: Path, root: Path, header: Mapping[str, Any]) -> Iterator[Dependencies]:
    if "dependencies" in header:
        name = script.relative_to(root).as_posix()
        lines = _checked_lines(list_at(header, "dependencies"), name)
        yield _listed_in(f"the header of {name}", [*_indexes(header), *lines])
    for folder in script.parents:
        if folder.is_relative_to(root) and (folder / REQUIREMENTS).is_file():
            file = (folder / REQUIREMENTS).relative_to(root).as_posix()
            packed = "" if folder == root else f"-r ../{file}\n"
            yield Dependencies(
                source=file, lines=tuple(_file_lines(folder / REQUIREMENTS, root)), packed=packed
            )


def _of_project(
    root: Path, project: Mapping[str, Any], extras: Sequence[str], groups: Sequence[str]
) -> Iterator[Dependencies]:
    named = [f"{kind} {listed(names)}" for kind, names in (("extras", extras), ("groups", groups)) if names]
    with_named = f" with the {' and the '.join(named)}" if named else ""
    lines = list(dict.fromkeys(_wanted_lines(project, extras, groups)))
    if project and (root / LOCK).is_file():
        _text(root / LOCK)
        locked = [*_indexes(project), *_locked_lines(root, extras, groups)]
        yield _listed_in(f"{LOCK}{with_named}", locked, is_whole=True)
    if lines or "dependencies" in mapping_at(project, "project"):
        yield _listed_in(f"{PYPROJECT}{with_named}", [*_indexes(project), *lines])


def _listed_in(source: str, lines: Sequence[str], *, is_whole: bool = False) -> Dependencies:
    packed = "".join(f"{line}\n" for line in lines) or "\n"
    return Dependencies(source=source, lines=tuple(lines), is_whole=is_whole, packed=packed)


# Any: TOML.
def _wanted_lines(project: Mapping[str, Any], extras: Sequence[str], groups: Sequence[str]) -> Iterator[str]:
    """The project's own requirements, and those of extras and groups; one of itself stands for its extras."""
    about: Mapping[str, Any] = mapping_at(project, "project")
    grouped: Mapping[str, Any] = mapping_at(project, "dependency-groups")
    lists = _named_lists(mapping_at(about, "optional-dependencies"), extras, "extras")
    _named_lists(grouped, groups, "groups")
    try:
        of_groups = resolve_dependency_groups(grouped, *groups)
    except (ExceptionGroup, ValueError, LookupError, TypeError) as error:
        raise ClientRefused(f"{PYPROJECT}: its dependency groups cannot be read: {error}") from error
    for line in _checked_lines([*list_at(about, "dependencies"), *chain(*lists), *of_groups], PYPROJECT):
        requirement = Requirement(line)
        if canonicalize_name(requirement.name) != canonicalize_name(str(about.get("name", ""))):
            yield line
        elif more := sorted(requirement.extras - {*extras}):
            yield from _wanted_lines(project, [*extras, *more], ())


def _named_lists(table: Mapping[str, Any], names: Sequence[str], kind: str) -> list[Sequence[Any]]:
    known = {canonicalize_name(name): entries for name, entries in table.items()}
    if missing := [name for name in names if canonicalize_name(name) not in known]:
        has = listed(table) or "none"
        raise ProjectRefused(f"{PYPROJECT} has no {kind} {listed(missing)}. It has: {has}.", kind)
    return [list_at(known, canonicalize_name(name)) for name in names]


def _locked_lines(root: Path, extras: Sequence[str], groups: Sequence[str]) -> list[str]:
    """What uv.lock pins, for every platform. Asks no index."""
    from uv import find_uv_bin

    named = [f"--extra={name}" for name in extras] + [f"--group={name}" for name in groups]
    form = ["--quiet", "--no-header", "--no-annotate", "--no-hashes", "--no-emit-project", "--no-editable"]
    command = [find_uv_bin(), "export", "--frozen", "--offline", "--no-default-groups", *form, *named]
    try:
        done = subprocess.run(
            command, cwd=root, capture_output=True, text=True, timeout=_EXPORT_S, check=True
        )
    except subprocess.SubprocessError as error:
        said = one_line(str(getattr(error, "stderr", "") or error).strip())
        raise ClientRefused(f"{LOCK} cannot be read: {said}. Make it anew: uv lock") from error
    return done.stdout.splitlines()


def _indexes(table: Mapping[str, Any]) -> Iterator[str]:
    """Uv's indexes as options of pip's requirements files."""
    for index in list_at(table, "tool", "uv", "index"):
        if url := text_at(index, "url"):
            yield f"{'--index-url' if at(index, 'default') is True else '--extra-index-url'} {url}"


def _contradictions(used: Dependencies, other: Dependencies) -> Iterator[str]:
    """Packages of which no version is what both want."""
    wanted, others = used.requirements, other.requirements
    for name in sorted(wanted.keys() & others.keys()):
        mine, theirs = wanted[name], others[name]
        if (mine.specifier & theirs.specifier).is_unsatisfiable():
            yield f"{used.source} asks for {mine}, and {other.source} for {theirs}."


def _checked_lines(lines: Sequence[Any], file: str) -> list[str]:
    for line in lines:
        try:
            Requirement(line)
        except (InvalidRequirement, TypeError) as error:
            said = one_line(str(error))
            raise ClientRefused(f"{file}: {line!r} is not a requirement, such as numpy>=2: {said}") from error
    return [*lines]


def _file_lines(path: Path, root: Path) -> Iterator[str]:
    """The lines of a requirements file, and of those that it names, without comments."""
    waiting, seen = [path.resolve()], {path.resolve()}
    while waiting:
        here = waiting.pop()
        raw = _text(here)
        for line in raw.replace("\\\n", " ").splitlines():
            if text := re.sub(r"(^|\s)#.*", "", line).strip():
                if not _OPTION_OR_PATH.match(text):
                    number = raw[: raw.find(text)].count("\n") + 1
                    _checked_lines([text.partition(" --")[0].strip()], f"{os.path.relpath(here)}:{number}")
                yield text
            other = (here.parent / nested[1]).resolve() if (nested := _NESTED.fullmatch(text)) else here
            if not (other.is_file() and other.is_relative_to(root.resolve())):
                raise ClientRefused(
                    f"{os.path.relpath(here)}: no such file in the root: {text}. Move it there."
                )
            if other not in seen:
                seen.add(other)
                waiting.append(other)


def _parsed(text: str, file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ClientRefused(f"{file} is not TOML: {error}") from error


def _text(path: Path) -> str:
    """The text of a file, or of none."""
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    _check_secrets(text, os.path.relpath(path))
    return text


def _check_secrets(text: str, file: str) -> None:
    for number, line in enumerate(text.splitlines(), start=1):
        kind = next((kind for kind, pattern in TOKEN_FORMATS.items() if pattern.search(line)), None)
        if kind:
            raise ClientRefused(
                f"{file}:{number} holds {kind}, not shown here, and everyone who can read the bucket could read it. Remove "
                "and revoke it: pip takes the password of an index from a keyring or a .netrc of the job's image"
            )
