"""Installs a job's Python packages for one replica, then becomes `python -m MODULE ARGS`.

Run inside the replica as `python -I package_runner.py PYTHON ORDER ARGS…`, where ORDER is JSON:
`{"package_uris": ["gs://…"], "python_module": "trainer.task"}`, and PYTHON the interpreter that the module gets.
Packages go into a folder of the replica's own, which stands before the packages of that interpreter's environment.
What they need and it has is not installed again; the rest is asked of the package index: the one that pip's variables
name, else the one that this machine's user has chosen, as uv's variables in the JSON file INDEXES beside TMPDIR.
Exit status 1, with the reason on standard error, where they cannot be installed.

uv installs them one by one with `--no-deps`: it is there even where the environment has no pip, and `--target` with
dependencies would fetch TensorFlow again.
"""

import functools
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import NoReturn

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

_GS = re.compile(r"gs://([^/]+)/(.+)")
_QUIETLY = ("--no-deps", "--no-cache", "--no-progress", "--color=never")
_INDEX_OPTIONS = {
    "PIP_INDEX_URL": "--default-index",
    "PIP_EXTRA_INDEX_URL": "--index",
    "PIP_FIND_LINKS": "--find-links",
}


INDEXES = "indexes.json"


class InstallError(Exception):
    """The packages cannot be installed; the message says which and why."""


def main(arguments: Sequence[str]) -> int:
    """Never returns when all goes well: the process is the module's then."""
    python, order = arguments[0], json.loads(arguments[1])
    scratch = Path(os.environ["TMPDIR"])
    target, indexes = scratch / "packages", json.loads((scratch.parent / INDEXES).read_text())
    try:
        install([_file_of(uri) for uri in order["package_uris"]], target, python, indexes)
    except InstallError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.flush()
    return _become([python, "-m", order["python_module"], *arguments[2:]], _search_paths(target))


def _become(program: Sequence[str], variables: Mapping[str, str]) -> NoReturn:
    os.execve(program[0], list(program), {**os.environ, **variables})  # noqa: S606  becoming the module is the purpose


def install(files: Sequence[Path], target: Path, python: str, indexes: Mapping[str, str]) -> None:
    """Install wheels and source distributions into `target`, and what they need that is nowhere yet.

    `indexes` are variables for uv.

    Raises:
        InstallError: a file is not a package, cannot be built, or needs what cannot be found.
    """
    is_own = python == sys.executable
    have = by_name(distributions() if is_own else distributions(path=[str(site_packages(Path(python)))]))
    run_uv = functools.partial(_uv, {**os.environ, **indexes}, target, python)
    run_uv(*map(str, files))
    asked: set[str] = set()
    while lacking := _lacking(have, by_name(distributions(path=[str(target)]))):
        if asked.issuperset(lacking):
            raise InstallError(f"These requirements contradict each other: {', '.join(sorted(lacking))}.")
        asked.update(lacking)
        run_uv(*sorted(lacking))


def _lacking(have: Mapping[str, Distribution], mine: Mapping[str, Distribution]) -> set[str]:
    needs = [need for distribution in mine.values() for need in needs_of(distribution)]
    return missing(needs, {**have, **mine})


def missing(needs: Iterable[str], have: Mapping[str, Distribution]) -> set[str]:
    """Those requirements that no distribution of `have`, by canonical name, meets; of extras too."""
    lacking: set[str] = set()
    waiting = [Requirement(need) for need in needs]
    checked: set[str] = set()
    while waiting:
        need = waiting.pop()
        distribution = have.get(canonicalize_name(need.name))
        if distribution is None or not need.specifier.contains(distribution.version, prereleases=True):
            lacking.add(str(need))
        elif need.extras and str(need) not in checked:
            checked.add(str(need))
            waiting += [Requirement(text) for text in needs_of(distribution, need.extras, only_extras=True)]
    return lacking


def needs_of(
    distribution: Distribution, extras: Iterable[str] = (), *, only_extras: bool = False
) -> list[str]:
    """What a distribution needs on this machine, markers resolved; `only_extras` leaves out what it always needs."""
    needs: list[str] = []
    for text in distribution.requires or []:
        need = Requirement(text)
        always = need.marker is None or need.marker.evaluate({"extra": ""})
        asked = need.marker is not None and any(need.marker.evaluate({"extra": extra}) for extra in extras)
        if (always and not only_extras) or (asked and not always):
            need.marker = None
            needs.append(str(need))
    return needs


def by_name(installed: Iterable[Distribution]) -> dict[str, Distribution]:
    return {canonicalize_name(one.name): one for one in installed}


def site_packages(python: Path) -> Path:
    """Where the packages of an environment lie, by its interpreter, which is of this one's version."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return python.parent.parent / "lib" / version / "site-packages"


def _file_of(uri: str) -> Path:
    """Where the object is a file.

    Raises:
        InstallError: it is not a gs:// URI, or the object does not exist.
    """
    match = _GS.fullmatch(uri)
    path = Path(os.environ.get("TRAINMASTER_GCS_ROOT", "/gcs"), *match.groups()) if match else None
    if path is None or not path.is_file():
        raise InstallError(f"The package {uri!r} cannot be read: there is no such object. Upload it first.")
    return path


def _search_paths(target: Path) -> dict[str, str]:
    """The package folder before whatever the image and the job put there."""
    before = {"PYTHONPATH": target, "PATH": target / "bin"}
    return {
        name: os.pathsep.join(filter(None, [str(folder), os.environ.get(name, "")]))
        for name, folder in before.items()
    }


def _uv(environment: Mapping[str, str], target: Path, python: str, *what: str) -> None:
    """Install exactly `what`, without what it needs. Output goes to the log, as errors where it fails.

    What must be built is built with the environment's packages, without network; else in a separate environment.

    Raises:
        InstallError: uv does not succeed.
    """
    from uv import find_uv_bin

    sys.stdout.write(f"Installing {', '.join(Path(one).name for one in what)}\n")
    command = [find_uv_bin(), "pip", "install", "--python", python, "--target", str(target)]
    failures: dict[str, None] = {}
    for how in (["--no-build-isolation"], []):
        done = subprocess.run(
            [*command, *_QUIETLY, *_index_flags(), *how, *what],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode == 0:
            sys.stdout.write(done.stdout)
            return
        failures[done.stdout] = None
    sys.stdout.flush()
    sys.stderr.writelines(failures)
    raise InstallError(f"These packages could not be installed: {', '.join(what)}.")


def _index_flags() -> list[str]:
    """The settings of the index by pip's variables, which the service's installer reads, as uv calls them."""
    flags = [
        flag
        for name, option in _INDEX_OPTIONS.items()
        for value in os.environ.get(name, "").split()
        for flag in (option, value)
    ]
    has_none = os.environ.get("PIP_NO_INDEX", "0") not in {"", "0", "false"}
    return [*flags, *(["--no-index"] if has_none else [])]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
