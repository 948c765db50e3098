"""Confinements of the user of the tests and, where that is root, of a user without any rights."""

import contextlib
import functools
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
_RUNNER = Path(__file__).with_name("confined.py")
_NOBODY = 65534
_WITHIN_S = 120.0


@dataclass(frozen=True, kw_only=True)
class User:
    """A user who confines programs.

    Attributes:
        uid: None for the user of the tests.
        python: one that this user may start.
    """

    uid: int | None
    python: str

    def start(self, *words: str, **more: Any) -> "subprocess.Popen[str]":
        """This user's Python with these arguments, which can import this project and the packages of the tests."""
        more |= {} if self.uid is None else {"user": self.uid, "group": self.uid, "extra_groups": []}
        environment = {"PYTHONPATH": f"{ROOT}:{sysconfig.get_path('purelib')}", "PATH": os.environ["PATH"]}
        return subprocess.Popen([self.python, *words], env=environment, cwd="/", text=True, **more)

    @contextlib.contextmanager
    def folder(self) -> Iterator[Path]:
        """A folder of this user's, outside those of pytest, which only its own user may enter."""
        path = Path(tempfile.mkdtemp(dir="/tmp", prefix="tm-confined-"))
        try:
            if self.uid is not None:
                os.chown(path, self.uid, self.uid)
            yield path
        finally:
            shutil.rmtree(path)


@dataclass(frozen=True, kw_only=True)
class Ended:
    status: int
    output: str
    errors: str


def run_confined(user: User, folder: Path, program: str, *arguments: str) -> Ended:
    """A program that has run in a confinement; what it had at /gcs/bucket is in `folder`/buckets/bucket."""
    pipes: dict[str, Any] = {
        "stdin": subprocess.DEVNULL,
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
    }
    with user.start(str(_RUNNER), str(folder), program, *arguments, **pipes) as process:
        output, errors = process.communicate(timeout=_WITHIN_S)
    return Ended(status=process.returncode, output=output, errors=errors)


@functools.cache
def another() -> User | None:
    """A user who is not root, if root runs the tests and lets that one confine programs."""
    for python in (sys.executable, "/usr/bin/python3") if os.getuid() == 0 else ():
        user = User(uid=_NOBODY, python=python)
        program = "import sys, marshal; from trainstack.sandbox.probe import obstacle; import trainstack.jobs.replicas.rootfs; sys.exit(bool(obstacle()))"
        with (
            contextlib.suppress(PermissionError),
            user.start("-c", program, stderr=subprocess.DEVNULL) as process,
        ):
            if process.wait(_WITHIN_S) == 0:
                return user
    return None


@pytest.fixture(scope="module", params=["own", "another"])
def user(request: pytest.FixtureRequest) -> User:
    if request.param == "own":
        return User(uid=None, python=sys.executable)
    if (found := another()) is None:
        pytest.skip("only root can test another user, who needs a Python and namespaces")
    return found
