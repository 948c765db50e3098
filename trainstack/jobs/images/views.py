"""Views of the stack's own environment: virtual environments with links to those packages that an image would have.

So the packages of a program that the stack's own environment can run are there at once, and no others: an import that
the image lacks fails here as it does in the cloud.
"""

import os
import sys
import venv
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from pathlib import Path, PurePosixPath

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

IN_EVERY_IMAGE = ("pip", "setuptools", "wheel")
"""With Python: https://hub.docker.com/_/python."""
_MODULE = "_replica_environment"
_START = """\
import os, site, sys

site.addsitedir({below!r})


# An image is not a virtual environment: pip installs with --user there, before the packages of the image. Python sets this
# after it has read this file, and before it looks for a sitecustomize, of which Debian has one.
def find_users_packages(before=site.execsitecustomize):
    before()
    site.ENABLE_USER_SITE, users = True, site.getusersitepackages()
    if os.path.isdir(users):
        count = len(sys.path)
        site.addsitedir(users)
        added = sys.path[count:]
        del sys.path[count:]
        place = sys.path.index(os.path.dirname(__file__))
        sys.path[place:place] = added


site.execsitecustomize = find_users_packages
"""
_PIP = '#!/bin/sh\nexec python -m pip "$@"\n'
_SCRIPT = "#!/usr/bin/env python\nimport sys\nfrom {module} import {name}\nsys.exit({call}())\n"


def site_packages(environment: Path) -> Path:
    """Where a virtual environment of this Python has its packages."""
    return environment / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"


def make_environment(folder: Path) -> None:
    """A virtual environment without packages, of the interpreter below the stack's own environment."""
    venv.EnvBuilder(symlinks=True).create(folder)


def layer_environment(folder: Path, below: Path) -> None:
    """A virtual environment over another one: it has its packages, and what is installed stays in `folder`."""
    make_environment(folder)
    packages = site_packages(folder)
    text = _START.format(below=str(site_packages(below)))
    (packages / f"{_MODULE}.py").write_text(text, encoding="utf-8")
    (packages / f"{_MODULE}.pth").write_text(f"import {_MODULE}\n", encoding="utf-8")
    settings = folder / "pyvenv.cfg"
    # Python knows "true" only, and pip refuses --user where it reads "false".
    settings.write_text(settings.read_text().replace("-packages = false", "-packages = no"))
    for name in ("pip", "pip3"):
        _write_program(folder / "bin" / name, _PIP)


def link_packages(environment: Path, requirements: Iterable[str], *, only_metadata: bool = False) -> None:
    """Link what the stack's own environment has of the requirements, and of what they need, into another environment.

    What it lacks is left out, and so is a line that states no requirement. A package that the other has stays. With
    `only_metadata`, uv takes the packages for installed, and replaces one of another version without its files here.
    """
    target = site_packages(environment)
    metadata = [path for path in target.glob("*.dist-info/METADATA") if not path.is_symlink()]
    has: list[Distribution] = [Distribution.at(path.parent) for path in metadata]
    wanted = _closure(requirements)
    for package in has:
        wanted.pop(canonicalize_name(package.name), None)
    # A folder that packages share, such as google/, has links inside; and so has a .dist-info, which uv ignores as a link.
    counts = Counter(folder for package in (*distributions(), *has) for folder in _folders_of(package))
    shared = {folder for folder, count in counts.items() if count > 1 or ".dist-info" in folder}
    for package in wanted.values():
        for path in _roots_of(package, shared):
            if only_metadata and ".dist-info/" not in path:
                continue
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            if not os.path.lexists(target / path):  # two packages may have one file
                (target / path).symlink_to(str(package.locate_file(path)))
        if not only_metadata:
            _write_scripts(package, environment / "bin")


def _closure(requirements: Iterable[str]) -> dict[str, Distribution]:
    packages: dict[str, Distribution] = {}
    waiting = list(_requirements_from(requirements))
    seen: set[tuple[str, str]] = set()
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue
        packages[name] = package
        for extra in {"", *requirement.extras} - {extra for known, extra in seen if known == name}:
            seen.add((name, extra))
            needs = _requirements_from(package.requires or ())
            waiting += [
                need for need in needs if need.marker is None or need.marker.evaluate({"extra": extra})
            ]
    return packages


def _paths_of(package: Distribution) -> list[str]:
    """Below site-packages, read as text: `files` takes seconds for TensorFlow."""
    return [line.partition(",")[0] for line in (package.read_text("RECORD") or "").splitlines()]


def _folders_of(package: Distribution) -> set[str]:
    folders = {path.rpartition("/")[0] for path in _paths_of(package)}
    return folders | {str(parent) for folder in folders for parent in PurePosixPath(folder).parents}


def _roots_of(package: Distribution, shared: set[str]) -> set[str]:
    """The package's files, each by the largest folder around it that has files of no other package."""
    roots: set[str] = set()
    for path in _paths_of(package):
        end = path.find("/")
        while end >= 0 and path[:end] in shared:
            end = path.find("/", end + 1)
        roots.add(path if end < 0 else path[:end])
    return {root for root in roots if not root.startswith("..")}


def _requirements_from(texts: Iterable[str]) -> Iterator[Requirement]:
    for text in texts:
        try:
            yield Requirement(text.partition(" --")[0].strip())
        except InvalidRequirement:  # an option, or a path
            continue


def _write_scripts(package: Distribution, folder: Path) -> None:
    """Commands of the package, for the Python that comes first in PATH: a replica's own."""
    commands = {entry.name: entry for entry in package.entry_points if entry.group == "console_scripts"}
    for name, entry in commands.items():
        text = _SCRIPT.format(module=entry.module, name=entry.attr.partition(".")[0], call=entry.attr)
        if not (folder / name).exists():  # of a package that uv installed
            _write_program(folder / name, text)
    for path in _paths_of(package):
        name = path.rpartition("/")[2]
        if path.startswith("../") and path.endswith(f"/bin/{name}") and not (folder / name).exists():
            (folder / name).symlink_to(str(package.locate_file(path)))


def _write_program(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
