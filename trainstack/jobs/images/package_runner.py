"""Installs a job's Python packages for one replica, then becomes `python -m MODULE ARGS`.

Run inside the replica as `python -I package_runner.py PYTHON ORDER ARGS…`, where ORDER is JSON:
`{"package_uris": ["gs://…"], "python_module": "trainer.task"}`, and PYTHON the interpreter that the module gets.
Packages go into a folder of the replica's own, which stands before the packages of that interpreter's environment.
What they need and it has is not installed again; the rest is asked of the package index: the one that pip's variables
name, else the one that this machine's user has chosen, as uv's variables in the JSON file INDEXES beside TMPDIR.
Exit status 1, with the reason on standard error, where they cannot be installed.

uv installs them, because it is there even where the environment has no pip. A dry run on that environment tells what
it lacks: `--target` with dependencies would fetch TensorFlow again.
"""

import functools
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

_GS = re.compile(r"gs://([^/]+)/(.+)")
_ADDED = re.compile(r"^ \+ (.+)$", re.MULTILINE)
"""What uv's dry run says of a package that the environment lacks, or has in another version."""
_QUIETLY = ("--link-mode=copy", "--no-progress", "--color=never")
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
    names = list(map(str, files))
    sys.stdout.write(f"Installing {', '.join(file.name for file in files)}\n")
    run_uv = functools.partial(_uv, {**os.environ, **indexes}, python, names)
    added = _ADDED.findall(run_uv("--dry-run"))
    needed = [requirement for requirement in added if " @ file:" not in requirement]
    sys.stdout.write(run_uv("--no-deps", "--target", str(target), *needed))


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


def _uv(environment: Mapping[str, str], python: str, names: Sequence[str], *words: str) -> str:
    """What `uv pip install` prints with these words.

    What this machine has is used without network, and what must be built is built with the environment's packages; where
    that fails, the index is asked, and packages are built in a separate environment.

    Raises:
        InstallError: uv does not succeed; its output is on standard error.
    """
    from uv import find_uv_bin

    command = [find_uv_bin(), "pip", "install", "--python", python, *_QUIETLY, *_index_flags()]
    failures: dict[str, None] = {}
    for how in (["--offline", "--no-build-isolation"], ["--no-build-isolation"], []):
        done = subprocess.run(
            [*command, *how, *words, *names],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode == 0:
            return done.stdout
        if "--offline" not in how:
            failures[done.stdout] = None
    sys.stdout.flush()
    sys.stderr.writelines(failures)
    raise InstallError(f"These packages could not be installed: {', '.join(names)}.")


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
