"""Failures of `make setup` on a machine: one sentence with the repair each, and no complete environment."""

import ast
import os
import shutil
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.tools.set_up.checkout import ROOT, Checkout, make_checkout
from trainstack.http import in_thread, serving

pytestmark = pytest.mark.slow(seconds=30)

BASE = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
RUN_BY_OLD_PYTHONS = (
    "tools/__init__.py",
    "tools/set_up/__init__.py",
    "tools/set_up/__main__.py",
    "tools/set_up/machine.py",
)


def unsupported_pythons() -> list[str]:
    """Those of this machine that start, on the path or from pyenv."""
    names = [f"python3.{minor}" for minor in (*range(6, 11), *range(14, 20))]
    programs = [*map(shutil.which, names), *Path.home().glob(".pyenv/versions/3.*/bin/python3")]
    code = "import sys; sys.exit((3, 11) <= sys.version_info[:2] <= (3, 13))"
    tried = (str(program) for program in programs if program)
    return [each for each in tried if subprocess.call([each, "-c", code], stderr=subprocess.DEVNULL) == 0]


def test_every_unsupported_python_of_this_machine_is_refused(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path)
    for python in unsupported_pythons():
        said = checkout.refused(python=python, PATH=f"{BASE.parent}:/usr/bin:/bin")
        assert said.startswith(f"Trainmaster needs Python 3.11 to 3.13, and {python} is 3.")
        assert said.endswith(f"make setup PYTHON=python3.{sys.version_info.minor}")


@pytest.mark.parametrize("path", RUN_BY_OLD_PYTHONS)
def test_what_refuses_a_python_can_be_read_by_python_3_6(path: str) -> None:
    ast.parse((ROOT / path).read_text(), feature_version=(3, 6))


def test_a_missing_venv_module_is_named_with_debians_package(tmp_path: Path) -> None:
    """Debian's python3 lacks ensurepip until python3-venv is installed; here the library is linked without it."""
    library = tmp_path / "lib" / f"python3.{sys.version_info.minor}"
    library.mkdir(parents=True)
    for found in Path(sysconfig.get_path("stdlib")).iterdir():
        if found.name != "ensurepip":
            (library / found.name).symlink_to(found)
    said = make_checkout(tmp_path).refused(python=str(BASE), PYTHONHOME=str(tmp_path))
    assert said == (
        f"{BASE} lacks the module that makes virtual environments. "
        f"On Debian and Ubuntu: apt-get install python3.{sys.version_info.minor}-venv"
    )


def test_an_index_that_does_not_answer_is_named_and_a_second_run_continues(checkout: Checkout) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        index = f"http://127.0.0.1:{taken.getsockname()[1]}/simple"
    said = checkout.refused(PIP_INDEX_URL=index, PIP_RETRIES="0")
    assert said.startswith(
        f"The package index cannot be reached: {index}/setuptools/: [Errno 111] Connection refused. "
    )
    assert "PIP_INDEX_URL" in said
    assert "pip.conf" in said
    assert checkout.make_setup().returncode == 0


@pytest.fixture
def refusing() -> Iterator[str]:
    """A server that refuses everything with the status that the path begins with."""

    async def refuse(request: Request) -> Response:
        return Response("", request.path_params["status"], {"WWW-Authenticate": 'Basic realm="packages"'})

    app = Starlette(routes=[Route("/{status:int}/{path:path}", refuse)])
    with in_thread(lambda: serving(app)) as url:
        yield url


@pytest.mark.parametrize(
    ("status", "sentence"),
    [
        ("401", "The package index asks for a login."),
        ("403", "The package index cannot be reached: {index}/setuptools/: 403 Client Error: Forbidden."),
    ],
)
def test_an_index_that_refuses_is_named(
    checkout: Checkout, refusing: str, status: str, sentence: str
) -> None:
    index = f"{refusing}/{status}"
    said = checkout.refused(PIP_INDEX_URL=index, PIP_RETRIES="0")
    assert said.startswith(sentence.format(index=index))
    assert "PIP_INDEX_URL" in said


def test_a_file_that_is_not_the_locked_one_is_refused(checkout: Checkout) -> None:
    wheel = checkout.index.folder / "alpha-1-py3-none-any.whl"
    wheel.write_bytes(wheel.read_bytes() + b"changed")
    said = checkout.refused()
    assert said.startswith(
        "The package index gave another file for alpha==1 than the one that requirements.lock"
    )


def test_a_package_without_a_wheel_for_this_machine_is_named(checkout: Checkout) -> None:
    checkout.index.add("gamma", "1", tag="cp27-cp27m-win32")
    said = checkout.refused()
    assert said.startswith("The package index has no wheel of gamma==1 for Python 3.")
    assert "glibc 2.28 or newer" in said


needs_mounts = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")


@pytest.fixture
def small(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A separate file system of the size that the test's parameter gives."""
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", request.param, "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("this machine does not let root mount a file system")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@needs_mounts
@pytest.mark.parametrize("small", ["size=16m"], indirect=True)
def test_a_disk_with_too_little_room_is_refused_before_anything_is_written(small: Path) -> None:
    checkout = make_checkout(small)
    said = checkout.refused()
    assert said.startswith(f"{checkout.root} has 0.0 GB free, and set-up needs 0.1 GB there. Free some.")
    assert "TMPDIR" not in said
    assert not (checkout.root / ".venv").exists()


@needs_mounts
@pytest.mark.parametrize("small", ["size=4g,nr_inodes=3000"], indirect=True)
def test_a_disk_that_becomes_full_ends_set_up_with_a_sentence(small: Path) -> None:
    """This file system has room, but for few files; the kernel gives the same error."""
    checkout = make_checkout(small)
    checkout.index.add("gamma", "1", files=3000)
    assert checkout.refused().startswith("The disk became full while packages were installed. ")


needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="giving files to another user needs root")
ORDINARY_USER = ("setpriv", "--bounding-set=-all")
"""Runs root's commands without the right to read and write everything."""


def give_away(folder: Path) -> None:
    subprocess.run(["chown", "--no-dereference", "--recursive", "daemon:", str(folder)], check=True)


@needs_root
@pytest.mark.parametrize("half", [False, True], ids=["whole pip", "half a pip"])
def test_a_checkout_of_another_user_is_named_with_its_owner(checkout: Checkout, half: bool) -> None:
    if half:
        next(checkout.root.glob(".venv/lib/*/site-packages/pip-*.dist-info/RECORD")).unlink()
    give_away(checkout.root)
    said = checkout.refused(under=ORDINARY_USER)
    assert said.startswith(f"Set-up cannot read or write {checkout.root}/.venv")
    assert ": Permission denied (errno 13). " in said
    assert said.endswith(
        " belongs to daemon, and you are root. Run make setup as daemon, or in a clone of your own."
    )


@needs_root
def test_an_environment_that_another_user_made_is_named_with_the_command_that_removes_it(
    checkout: Checkout,
) -> None:
    give_away(checkout.root / ".venv")
    said = checkout.refused(under=ORDINARY_USER)
    assert said.endswith(" belongs to daemon, and you are root. Run sudo rm -rf .venv, then make setup.")


def test_a_file_in_place_of_the_environment_is_named(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path)
    (checkout.root / ".venv").touch()
    said = checkout.refused()
    assert said == (
        f"{checkout.root}/.venv is a file, and set-up needs a folder there. Remove it: rm .venv. "
        "make setup then makes the folder."
    )


def test_a_path_that_no_environment_may_have_is_named(tmp_path: Path) -> None:
    (tmp_path / "a:b").mkdir()
    checkout = make_checkout(tmp_path / "a:b")
    assert checkout.refused().endswith(
        " has a : in its path, which no virtual environment may have. Move the checkout."
    )


def test_a_traceback_of_pips_ends_set_up_with_its_last_line_a_repair_and_the_log(
    checkout: Checkout,
) -> None:
    (main,) = checkout.root.glob(".venv/lib/*/site-packages/pip/_internal/cli/main.py")
    main.write_text("raise ModuleNotFoundError('what pip lacks')\n")
    done = checkout.make_setup()
    assert done.returncode != 0
    assert done.stderr.splitlines()[:3] == [
        "pip failed: ModuleNotFoundError: what pip lacks",
        "If it fails so again, run rm -rf .venv, then make setup, which makes it again.",
        f"pip's output is in {checkout.root}/.venv/set-up.log.",
    ]
