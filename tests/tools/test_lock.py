"""The exported requirements have the versions of the lock, which the tests used."""

import re
import tomllib
from pathlib import Path

import pytest

from tests.image.cloud_build import loaded, substituted, substitutions
from tools.images import IMAGES
from tools.lock import with_hashes

ROOT = Path(__file__).resolve().parents[2]
EXPORTS = ["functions/requirements.txt", "trainer/requirements-cpu.txt", "trainer/installer.txt"]
CUDA = "trainer/requirements-cuda.txt"
PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>\S+)")


def pins(path: str) -> dict[str, str]:
    found = (PIN.match(line) for line in (ROOT / path).read_text().splitlines())
    return {match["name"]: match["version"] for match in found if match}


@pytest.mark.parametrize("export", EXPORTS)
def test_every_deployed_version_is_the_locked_one(export: str) -> None:
    locked, exported = pins("requirements.lock"), pins(export)
    assert exported
    assert {name: locked.get(name) for name in exported} == exported


def test_the_variant_for_gpus_has_the_packages_of_the_other_and_cuda() -> None:
    cpu, cuda = pins("trainer/requirements-cpu.txt"), pins(CUDA)
    assert cpu.items() <= cuda.items()
    assert all(name.startswith("nvidia-") for name in cuda.keys() - cpu.keys())
    major, minor = cuda["nvidia-cudnn-cu12"].split(".")[:2]
    assert (int(major), int(minor)) < (9, 11), "the V100 of the codelabs needs an older one"


@pytest.mark.parametrize("path", ["requirements.lock", "tools/publish.txt", *EXPORTS, CUDA])
def test_every_locked_package_has_a_hash_and_no_index_is_named(path: str) -> None:
    text = (ROOT / path).read_text()
    for block in re.split(r"\n(?=\S)", text.strip()):
        assert PIN.match(block), block
        assert "--hash=sha256:" in block, block
    assert "://" not in text


def test_the_functions_deploy_only_hashes_of_the_lock_and_at_most_half_of_them() -> None:
    locked, deployed = (
        set(re.findall(r"sha256:([0-9a-f]{64})", (ROOT / path).read_text()))
        for path in ("requirements.lock", EXPORTS[0])
    )
    assert deployed < locked
    assert 2 * len(deployed) < len(locked)


def test_a_package_without_a_wheel_for_the_functions_keeps_all_of_its_hashes() -> None:
    one, other = (f" \\\n    --hash=sha256:{digit * 64}" for digit in "ab")
    requirements = f"first==1.0{one}{other}\nsecond==2.0{other}\n"
    assert with_hashes(requirements, {"a" * 64}) == f"first==1.0{one}\nsecond==2.0{other}\n"


def test_the_package_requires_what_the_functions_do() -> None:
    """The local stack starts the functions in the environment that the package is installed in."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert set(declared["dependency-groups"]["functions"]) <= set(declared["project"]["dependencies"])


def test_only_an_extra_brings_tensorflow() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    heavy = {"tensorflow", "tf-keras", "tensorflow-datasets"}
    assert not heavy & set(project["dependencies"])
    assert heavy <= {name for extra in project["optional-dependencies"].values() for name in extra}


def test_every_image_that_a_build_starts_from_is_named_by_digest_and_renewed_with_the_lock() -> None:
    build = loaded()
    steps = {substituted(step["name"], substitutions(build)) for step in build["steps"]}
    recipe = (ROOT / "Dockerfile").read_text()
    bases = {name for line in re.findall(r"^FROM (.+)$", recipe, re.MULTILINE) for name in line.split()}
    assert bases == {"${BASE_IMAGE}"}
    default = re.findall(r"^ARG BASE_IMAGE=(.+)$", recipe, re.MULTILINE)
    named = {*steps, *default, build["substitutions"]["_BASE_IMAGE"]}
    assert [name for name in named if not re.search(r"@sha256:[0-9a-f]{64}$", name)] == []
    assert {name.partition("@")[0] for name in named} == set(IMAGES)
    assert len(named) == len(IMAGES), "one digest each"
