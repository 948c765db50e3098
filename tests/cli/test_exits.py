"""Exit statuses of the command: one for every error of the client, and for an output that cannot be written."""

import importlib
import inspect
import os
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import trainmaster.cli
import trainmaster.client
from tests.client.served import served_context
from trainmaster.cli.exits import stop_for
from trainstack.find import NoStack

ROOT = Path(__file__).resolve().parents[2]


def exceptions(package: str, paths: list[str]) -> Iterator[type[Exception]]:
    """Those that the package's modules define; a private one ends in its own module."""
    for found in pkgutil.walk_packages(paths, f"{package}."):
        module = importlib.import_module(found.name)
        for _, each in inspect.getmembers(module, inspect.isclass):
            is_own = each.__module__ == found.name and not each.__name__.startswith("_")
            if is_own and issubclass(each, Exception):
                yield each


OF_CLIENT = [*exceptions("trainmaster.client", list(trainmaster.client.__path__)), NoStack]
OF_COMMAND = list(exceptions("trainmaster.cli", list(trainmaster.cli.__path__)))


def test_the_exceptions_of_the_client_are_found() -> None:
    assert {"NotFound", "NoStack", "UnusableFile", "SourceGoneError"} <= {each.__name__ for each in OF_CLIENT}


@pytest.mark.parametrize("error", OF_CLIENT, ids=lambda each: each.__name__)
def test_every_exception_of_the_client_ends_the_command_with_a_status(error: type[Exception]) -> None:
    stop = stop_for(error("why"))
    assert stop is not None
    assert stop.message == "why"


@pytest.mark.parametrize("error", [*OF_CLIENT, *OF_COMMAND], ids=lambda each: each.__name__)
def test_no_exception_is_frozen_because_a_traceback_must_be_set_on_it(error: type[Exception]) -> None:
    parameters = getattr(error, "__dataclass_params__", None)
    assert not getattr(parameters, "frozen", False)


def printing(output: int) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run(
        [sys.executable, "-m", "trainmaster", "completion", "bash"],
        cwd=ROOT,
        stdout=output,
        stderr=subprocess.PIPE,
        timeout=120,
        check=False,
    )


def test_a_closed_pipe_ends_the_command_quietly() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = printing(writing)
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_standard_streams_are_no_fault(tmp_path: Path, closed: str) -> None:
    with served_context(tmp_path):
        done = subprocess.run(
            ["bash", "-c", f'exec "$0" -m trainmaster ls {closed}', sys.executable],
            cwd=tmp_path,
            env={"HOME": str(tmp_path), "PYTHONPATH": str(ROOT)},
            capture_output=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stderr


def test_ctrl_c_during_the_first_imports_shows_no_traceback() -> None:
    code = """
import sys

class Interrupted:
    def find_spec(self, name, *_):
        if name == "click":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted())
from trainmaster.__main__ import main
sys.exit(main())
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "Stopped.\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has a device that is always full")
def test_a_full_disk_is_one_clear_error() -> None:
    with Path("/dev/full").open("wb") as full:
        done = printing(full.fileno())
    assert done.returncode == 1
    assert done.stderr.decode() == (
        "Error: A write failed: No space left on device. Free space, or write elsewhere.\n"
    )
