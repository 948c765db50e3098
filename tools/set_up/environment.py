"""The virtual environment of the checkout: made, filled with the locked packages and the command, marked as complete."""

import csv
import re
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from importlib.metadata import distributions
from pathlib import Path

from tools.set_up import machine, pip_failures, refusals
from tools.set_up.pip_run import packages_folder, run_pip
from trainmaster.resources import ROOT

LOCK = ROOT / "requirements.lock"
ENVIRONMENT = ROOT / ".venv"
STAMP = ENVIRONMENT / ".installed-from-lock"
PIN = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==")

# Nothing is resolved: pip before 24.0 does not apply the lock to a requirement with an extra.
INSTALL = ("install", "--no-deps", "--require-hashes", "--progress-bar=off", "--only-binary=:all:")
# promise, which TensorFlow Datasets needs, has no wheel. It is built with the locked setuptools, which is therefore
# installed first, in place of the newest one. No compiler is needed: it is Python alone.
BUILDER = "setuptools"
BUILT = ("--no-binary=promise", "--no-build-isolation", "--use-pep517")

# Only this script has the checkout on its import path: installed in .venv, the folders `trainer`, `functions` and
# `schemas` would hide packages of those names.
COMMAND = """#!{python}
import sys

sys.path.insert(0, "{root}")
from trainmaster.__main__ import main

sys.exit(main())
"""


def set_up() -> None:
    """Make .venv contain exactly the packages of the lock, and the command.

    Where a run has failed or was interrupted, the next one continues.

    Raises:
        SystemExit: it failed; the exit's sentence has the likely repair.
    """
    started = time.monotonic()
    try:
        pins = read_lock()
        if not (_has_whole_pip() and _has_this_python()):
            make_environment(packages=len(pins))
        _remove_halves()
        install_lock(pins)
        write_command(ENVIRONMENT / "bin" / "trainmaster")
        STAMP.touch()
    except KeyboardInterrupt:
        sys.exit("Set-up was interrupted; make setup continues it.")
    except OSError as error:
        sys.exit(refusals.sentence_for(error, ENVIRONMENT))
    print(f"Set up in {time.monotonic() - started:.0f} s.", flush=True)


def _has_whole_pip() -> bool:
    """Whether .venv has every module of its pip: ensurepip, when interrupted, and rm leave some of them."""
    packages = packages_folder(ENVIRONMENT)
    records = [folder / "RECORD" for folder in packages.glob("pip-*.dist-info")]
    if not records or not all(record.exists() for record in records):  # RECORD is written last
        return False
    names = [row[0] for record in records for row in csv.reader(record.read_text().splitlines()) if row]
    return all((packages / name).exists() for name in names if name.endswith(".py"))


def _has_this_python() -> bool:
    """Whether .venv was made by the Python that runs this."""
    code = "import sys; print(sys.base_prefix, sys.version)"
    python = ENVIRONMENT / "bin" / "python"
    try:
        done = subprocess.run([python, "-Ic", code], capture_output=True, text=True, check=False)
    except OSError:  # it is missing, or links to a Python that this user may not start
        return False
    return done.stdout == f"{sys.base_prefix} {sys.version}\n"


def make_environment(*, packages: int) -> None:
    """Replace .venv by one without packages, if the machine has what it needs and room for them.

    Raises:
        OSError: the file system refuses it.
        SystemExit: the machine lacks something; every fault is named.
    """
    if faults := machine.faults(ENVIRONMENT, packages=packages):
        sys.exit("\n".join(faults))
    print(f"Making .venv with Python {sys.version.split()[0]} of {sys.base_prefix}", flush=True)
    try:
        venv.create(ENVIRONMENT, clear=True, symlinks=True, with_pip=True)
    except subprocess.CalledProcessError as error:
        sys.exit(pip_failures.sentence_for(str(error.stdout, "utf-8", "replace"), ENVIRONMENT))


def _remove_halves() -> None:
    """Forget packages whose installation was cut off, which pip takes for complete: RECORD is written last."""
    for folder in packages_folder(ENVIRONMENT).glob("*.dist-info"):
        if not (folder / "RECORD").exists():
            shutil.rmtree(folder)


def read_lock() -> dict[str, str]:
    """The parts of the lock, each with its package's normalized name, which two may share: see its markers."""
    parts = re.split(r"\n(?=\S)", LOCK.read_text().strip())
    return {part: _normal_name(match["name"]) for part in parts if (match := PIN.match(part))}


def install_lock(pins: dict[str, str]) -> None:
    """Install what the lock names, and remove what it does not name.

    Raises:
        OSError: the file system refuses it.
        SystemExit: pip failed.
    """
    size_gb = machine.INSTALLED_MB * len(pins) / 1000
    print(f"Installing {LOCK.name}: {len(pins)} packages, {size_gb:.1f} GB", flush=True)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as builder:
        builder.writelines(f"{part}\n" for part, name in pins.items() if name == BUILDER)
        builder.flush()
        # With -vv pip says why it cannot read the index. The first package shows it, and has few files.
        run_pip(ENVIRONMENT, [*INSTALL, "-vv", "--requirement", builder.name])
    run_pip(ENVIRONMENT, [*INSTALL, *BUILT, "--requirement", str(LOCK)], shown_packages=len(pins))
    packages = distributions(path=[str(packages_folder(ENVIRONMENT))])
    installed = {_normal_name(package.name) for package in packages}
    if others := sorted(installed - {*pins.values(), "pip"}):
        print(f"Removing what {LOCK.name} does not name: {', '.join(others)}", flush=True)
        run_pip(ENVIRONMENT, ["uninstall", "--yes", *others])


def write_command(path: Path) -> None:
    """Write the command of this checkout, which works in any folder."""
    path.write_text(COMMAND.format(python=ENVIRONMENT / "bin" / "python", root=ROOT))
    path.chmod(0o755)


def _normal_name(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
