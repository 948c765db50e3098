"""The trainer's image, built for real by the builder of this machine; where there is none, `needs` leaves tests out."""

import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from trainmaster.deploy.local_image import BASE, Builder, build_trainer, builder, make_base

ROOT = Path(__file__).resolve().parents[2]
IMAGE = "localhost/trainmaster/tests/trainer:latest"
REQUIRED = "TRAINMASTER_TEST_CONTAINERS"
"""Set to 1 where the tools are to be there: their absence is then an error, not a reason to leave tests out."""

TOOLS = {
    "builder": ("buildah", "debootstrap"),
    "runtime": ("buildah", "debootstrap", "podman"),
    "registry": ("docker-registry",),
    "gcloud": ("gcloud",),
}


def needs(*kinds: str) -> pytest.MarkDecorator:
    """What a module's tests need of a machine: the TOOLS of these kinds, and root.

    Nobody can build an image without a builder, and a laptop has none: there its tests are left out, with what is
    missing as the reason. With REQUIRED they run whatever is missing, and fail.
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
    """The local base: made by the first test run of a machine, kept in the builder's store for those after it."""
    if not build.has(BASE):  # or it waits for whoever builds upon it already
        with alone():
            if not build.has(BASE):
                make_base(build)
    return BASE


@pytest.fixture(scope="session")
def trainer_image(build: Builder, base: str) -> str:
    with alone():
        build_trainer(build, base=base, tag=IMAGE, revision="the-first")
    return IMAGE


@contextmanager
def alone() -> Iterator[None]:
    """One at a time: of two test processes that build the same, the second finds the layers of the first."""
    with (Path(tempfile.gettempdir()) / "trainmaster-tests-image.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def inspected(image: str) -> dict[str, Any]:
    """The image's configuration and its layers, as the OCI image specification has them."""
    done = subprocess.run(
        ["buildah", "inspect", "--type", "image", image], check=True, capture_output=True, text=True
    )
    found: dict[str, Any] = json.loads(done.stdout)["OCIv1"]
    return found
