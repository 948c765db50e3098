"""Installs a job's Python packages for one replica, then becomes `python -m MODULE ARGS`.

Run inside the replica as `python -I package_runner.py PYTHON ORDER ARGS…`, where ORDER is JSON:
`{"package_uris": ["gs://…"], "python_module": "trainer.task"}`, and PYTHON the interpreter of its image's environment.
Packages go into the replica's own environment over that one, in the folder ENVIRONMENT beside TMPDIR, and the module
gets its interpreter. What they need and the image's has is not installed again; the rest is asked of the package index:
the one that pip's variables name, else the one that this machine's user has chosen, as uv's variables in the JSON file
INDEXES beside TMPDIR. Exit status 1, with the reason on standard error, where they cannot be installed.

uv installs them, because it is there even where the environment has no pip. A dry run on the image's environment tells
what that lacks: uv does not look below the replica's own, and would fetch TensorFlow again.
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

ENVIRONMENT = "python"
INDEXES = "indexes.json"


class InstallError(Exception):
    """The packages cannot be installed; the message says which and why."""


def main(arguments: Sequence[str]) -> NoReturn:
    """The process is the module's when all goes well."""
    python, order = arguments[0], json.loads(arguments[1])
    scratch = Path(os.environ["TMPDIR"]).parent
    own, indexes = str(scratch / ENVIRONMENT / "bin" / "python"), json.loads((scratch / INDEXES).read_text())
    try:
        install([_file_of(uri) for uri in order["package_uris"]], own, python, indexes)
    except InstallError as error:
        sys.exit(str(error))
    sys.stdout.flush()
    os.execv(own, [own, "-m", order["python_module"], *arguments[2:]])  # noqa: S606  becoming the module is the purpose


def install(files: Sequence[Path], own: str, python: str, indexes: Mapping[str, str]) -> None:
    """Install wheels and source distributions for the interpreter `own`, and what they need that `python` does not have.

    `indexes` are variables for uv.

    Raises:
        InstallError: a file is not a package, cannot be built, or needs what cannot be found.
    """
    names = list(map(str, files))
    sys.stdout.write(f"Installing {', '.join(file.name for file in files)}\n")
    run_uv = functools.partial(_uv, {**os.environ, **indexes}, names)
    added = _ADDED.findall(run_uv("--dry-run", "--python", python))
    needed = [requirement for requirement in added if " @ file:" not in requirement]
    sys.stdout.write(run_uv("--no-deps", "--python", own, *needed))


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


def _uv(environment: Mapping[str, str], names: Sequence[str], *words: str) -> str:
    """What `uv pip install` prints with these words.

    What this machine has is used without network, and what must be built is built with the environment's packages; where
    that fails, the index is asked, and packages are built in a separate environment.

    Raises:
        InstallError: uv does not succeed; its output is on standard error.
    """
    from uv import find_uv_bin

    command = [find_uv_bin(), "pip", "install", *_QUIETLY, *_index_flags()]
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
    main(sys.argv[1:])
