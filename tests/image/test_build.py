"""The Dockerfile, built for real on a small local base."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.trainer.devices.test_accelerators import T4, variables
from trainmaster.deploy.local_image import VARIANTS, Builder, build_trainer

from .conftest import ROOT, inspected, needs

pytestmark = [pytest.mark.slow, needs("builder"), pytest.mark.timeout(1200)]
# The first build of a machine makes the base and downloads TensorFlow; those after it take seconds.

FIXTURES = dict(zip(VARIANTS, ("trainer_image", "cuda_image"), strict=True))
NO_GPU = ("env", "CUDA_VISIBLE_DEVICES=")  # nor the GPU of the machine that runs the tests
OTHER = "localhost/trainmaster/tests/other:latest"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """What a build reads, to be changed by a test."""
    for name in ("Dockerfile", ".dockerignore"):
        shutil.copy(ROOT / name, tmp_path)
    shutil.copytree(ROOT / "trainer", tmp_path / "trainer", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


@pytest.fixture
def other() -> Iterator[str]:
    yield OTHER
    subprocess.run(["buildah", "rmi", "--force", OTHER], check=False, capture_output=True)


@contextmanager
def container(image: str) -> Iterator[str]:
    made = subprocess.run(["buildah", "from", image], check=True, capture_output=True, text=True)
    name = made.stdout.strip()
    try:
        yield name
    finally:
        subprocess.run(["buildah", "rm", name], check=True, capture_output=True)


def printed(name: str, *words: str) -> str:
    command = ["buildah", "run", "--isolation", "chroot", name, "--", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_the_program_starts_as_root(trainer_image: str) -> None:
    config = inspected(trainer_image)["config"]
    assert config.get("User", "") == ""
    assert config["Entrypoint"] == ["python", "-m", "trainer.task"]
    with container(trainer_image) as name:
        assert printed(name, "id", "-u").strip() == "0"
        assert "--data_dir" in printed(name, *config["Entrypoint"], "--help")


def test_a_script_in_a_folder_of_its_own_finds_the_package(trainer_image: str) -> None:
    with container(trainer_image) as name:
        script = "cd /tmp && python -c 'import trainer; print(trainer.__file__)'"
        assert printed(name, "sh", "-c", script).strip() == "/app/trainer/__init__.py"


def test_the_variant_for_gpus_brings_cuda_and_loads_without_a_gpu(cuda_image: str) -> None:
    said = (
        "import tensorflow as tf; from importlib.metadata import version;"
        "print(tf.test.is_built_with_cuda(), tf.config.list_physical_devices('GPU'), version('nvidia-cudnn-cu12'))"
    )
    with container(cuda_image) as name:
        built, devices, cudnn = printed(name, *NO_GPU, "python", "-c", said).split()
    assert (built, devices) == ("True", "[]")
    assert cudnn.startswith("9.10.")


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_job_with_gpus_ends_with_status_2_where_none_is_visible(
    variant: str, request: pytest.FixtureRequest
) -> None:
    image: str = request.getfixturevalue(FIXTURES[variant])
    environment = [f"{name}={value}" for name, value in variables(T4).items()]
    with container(image) as name, pytest.raises(subprocess.CalledProcessError) as ended:
        printed(
            name,
            *NO_GPU,
            *environment,
            *inspected(image)["config"]["Entrypoint"],
            "--dataset=horses_or_humans",
        )
    assert ended.value.returncode == 2
    assert "The job has 2 NVIDIA_TESLA_T4 for chief-0, but TensorFlow sees no GPU" in ended.value.stderr
    assert "Build the image with _VARIANT=cuda" in ended.value.stderr


def test_nothing_of_the_builders_own_settings_is_left_in_it(trainer_image: str) -> None:
    with container(trainer_image) as name:
        left = "ls -A /run/secrets /tmp 2>/dev/null; ls /etc/pip.conf /etc/uv 2>/dev/null; env"
        found = printed(name, "sh", "-c", left)
    assert not any(word in found for word in ("ca.pem", "pip.conf", "uv.toml", "SSL_CERT_FILE", "INDEX_URL"))


def test_another_revision_is_another_label_on_the_same_layers(
    build: Builder, base: str, trainer_image: str, other: str
) -> None:
    build_trainer(build, base=base, tag=other, revision="the-second")
    before, after = inspected(trainer_image), inspected(other)
    assert after["rootfs"]["diff_ids"] == before["rootfs"]["diff_ids"], "a layer was built again"
    label = "org.opencontainers.image.revision"
    assert before["config"]["Labels"][label] == "the-first"
    assert after["config"]["Labels"][label] == "the-second"


def test_a_changed_program_leaves_the_layer_of_the_packages(
    build: Builder, base: str, trainer_image: str, tree: Path, other: str
) -> None:
    (tree / "trainer" / "addition.py").write_text("ADDED = True\n")
    build_trainer(build, base=base, tag=other, tree=tree, revision="changed")
    before, after = (inspected(image)["rootfs"]["diff_ids"] for image in (trainer_image, other))
    kept = next(i for i, (one, two) in enumerate(zip(before, after, strict=True)) if one != two)
    assert kept >= 3, "the base, the list of packages and the packages"
    with container(other) as name:
        assert printed(name, "python", "-c", "from trainer.addition import ADDED; print(ADDED)") == "True\n"


def test_a_program_that_does_not_start_becomes_no_image(
    build: Builder, base: str, trainer_image: str, tree: Path
) -> None:
    (tree / "trainer" / "task.py").write_text("raise SystemExit(1)\n")
    with pytest.raises(subprocess.CalledProcessError):
        build_trainer(build, base=base, tag=OTHER, tree=tree, revision="broken")
    assert not build.has(OTHER)


def test_a_package_that_is_not_the_locked_one_is_not_installed(build: Builder, base: str, tree: Path) -> None:
    installer = tree / "trainer" / "installer.txt"
    name = installer.read_text().partition(" ")[0]
    installer.write_text(f"{name} --hash=sha256:{'0' * 64}\n")
    with pytest.raises(subprocess.CalledProcessError):
        build_trainer(build, base=base, tag=OTHER, tree=tree, revision="forged")
    assert not build.has(OTHER)
