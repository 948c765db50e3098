"""The trainer's image, built for real by this machine's builder; `needs` skips tests where a tool is missing."""

import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.processes import run_to_end
from trainmaster.deploy.local_image import BASE, Builder, build_trainer, builder, make_base

ROOT = Path(__file__).resolve().parents[2]
IMAGE = "localhost/trainmaster/tests/trainer:latest"
CUDA = "localhost/trainmaster/tests/trainer:cuda"
REQUIRED = "TRAINMASTER_TEST_CONTAINERS"
"""Set to 1 to make a missing tool fail the tests that need it, instead of skipping them."""

TOOLS = {
    "builder": ("buildah", "debootstrap"),
    "runtime": ("buildah", "debootstrap", "podman"),
    "registry": ("docker-registry",),
    "gcloud": ("gcloud",),
}


def needs(*kinds: str) -> pytest.MarkDecorator:
    """Skip a module's tests unless the machine has the TOOLS of these kinds and the user is root.

    The reason names what is missing. With REQUIRED the tests run anyway, and fail.
    """
    lacking = missing(*kinds)
    return pytest.mark.skipif(
        bool(lacking) and os.environ.get(REQUIRED) != "1", reason=f"not on this machine: {', '.join(lacking)}"
    )


def missing(*kinds: str) -> list[str]:
    wanted = dict.fromkeys(tool for kind in kinds for tool in TOOLS[kind])
    search = f"{os.environ.get('PATH', '')}:/usr/sbin"
    found = [tool for tool in wanted if shutil.which(tool, path=search) is None]
    return found + (["root"] if os.geteuid() != 0 else [])


@pytest.fixture(scope="session")
def build() -> Builder:
    return builder()


@pytest.fixture(scope="session")
def base(build: Builder) -> str:
    """The local base: made by the first test run on a machine, and kept in the builder's store for later runs."""
    if not build.has(BASE):  # do not wait for the lock while another process builds on the base
        with alone():
            if not build.has(BASE):
                make_base(build)
    return BASE


@pytest.fixture(scope="session")
def trainer_image(build: Builder, base: str) -> str:
    with alone():
        build_trainer(build, base=base, tag=IMAGE, revision="the-first")
    return IMAGE


@pytest.fixture(scope="session")
def cuda_image(build: Builder, base: str) -> str:
    with alone():
        build_trainer(build, base=base, tag=CUDA, variant="cuda", revision="the-first")
    return CUDA


@contextmanager
def alone() -> Iterator[None]:
    """Build in one test process at a time, so that the second finds the layers of the first in the store."""
    with (Path(tempfile.gettempdir()) / "trainmaster-tests-image.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def inspected(image: str) -> dict[str, Any]:
    """The image's configuration and its layers, as the OCI image specification defines them."""
    done = run_to_end(["buildah", "inspect", "--type", "image", image], check=True)
    found: dict[str, Any] = json.loads(done.stdout)["OCIv1"]
    return found
