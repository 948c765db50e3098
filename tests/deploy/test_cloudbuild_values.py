"""A substitution of cloudbuild.yaml is data in every step: no character of it reaches a shell as its script."""

import contextlib
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.image.cloud_build import GIVEN, Worker, loaded, substitutions

SHELLS = {"bash", "sh"}
PASTED = re.compile(r"(?<!\$)(?:\$\$)*\$(?!\$)\{?\w")
HOSTILE = (
    '"; touch PWNED; "',
    "'; touch PWNED; '",
    "$(touch PWNED)",
    "`touch PWNED`",
    "x\ntouch PWNED\n",
    "x' | touch PWNED # ' \" \\",
    "/e;1e touch PWNED;s/",  # a script of GNU sed that starts a program
)
GIVEN_BY_USERS = sorted({*loaded()["substitutions"], "COMMIT_SHA"})
_RECORDER = """#!/bin/sh
for word in "$@"; do printf '%s\\0' "$word"; done >> "$BUILDER_OUTPUT/words"
"""


def scripts(build: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for step in build["steps"] if step["entrypoint"] in SHELLS]


def test_no_substitution_is_pasted_into_the_text_of_a_script() -> None:
    found = scripts(loaded())
    assert "deploy-functions" in [step["id"] for step in found]
    assert [step["id"] for step in found if PASTED.search(step["args"][-1])] == []


@pytest.mark.parametrize("text", ["$PROJECT_ID", "${_REGION}", "a $$$_REGION", '"$BUILD_ID"'])
def test_a_pasted_substitution_is_found(text: str) -> None:
    assert PASTED.search(text)
    assert not PASTED.search(text.replace("$", "$$"))


@pytest.mark.parametrize("value", HOSTILE)
def test_hostile_values_start_nothing(value: str, tmp_path: Path) -> None:
    """What they may do is fail their step."""
    build = loaded()
    worker = recording_worker(tmp_path, substitutions(build, **dict.fromkeys(GIVEN_BY_USERS, value)))
    for step in scripts(build):
        with contextlib.suppress(subprocess.CalledProcessError):
            worker.run(build, step["id"])
    assert not list(tmp_path.rglob("PWNED"))


@pytest.mark.parametrize(
    ("name", "step", "expected"),
    [
        ("_BASE_IMAGE", "build", "BASE_IMAGE={}"),
        ("_VARIANT", "build", "VARIANT={}"),
        ("_LAUNCHER", "build", "LAUNCHER={}"),
        ("COMMIT_SHA", "build", "org.opencontainers.image.revision={}"),
        ("_REPOSITORY", "push", f"us-central1-docker.pkg.dev/{GIVEN['PROJECT_ID']}/{{}}/trainer:latest"),
        ("_REGION", "deploy-functions", "--region={}"),
        ("_IMAGES_TOPIC", "publish-image", "{}"),
    ],
)
def test_a_value_reaches_its_program_as_it_is(name: str, step: str, expected: str, tmp_path: Path) -> None:
    build, value = loaded(), " ".join(HOSTILE)
    (tmp_path / "trainer-image.txt").write_text("image@sha256:0")
    recording_worker(tmp_path, substitutions(build, **{name: value})).run(build, step)
    assert expected.format(value) in (tmp_path / "words").read_text().split("\0")


def recording_worker(folder: Path, values: dict[str, str]) -> Worker:
    """A worker whose programs keep the words that they are given."""
    for program in ("docker", "gcloud"):
        (folder / program).write_text(_RECORDER)
        (folder / program).chmod(0o755)
    return Worker(workspace=folder, output=folder, shims=folder, values=values)
