"""The image's recipe and the build that makes it."""

import re
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from dockerfile_parse import DockerfileParser

ROOT = Path(__file__).resolve().parents[2]
DEEP_LEARNING_BASE = re.compile(
    r"us-docker\.pkg\.dev/deeplearning-platform-release/gcr\.io/tf2-\w+\.\d+-\d+\.py\d+"
)


@pytest.fixture
def instructions() -> list[tuple[str, str]]:
    parser = DockerfileParser(fileobj=BytesIO((ROOT / "Dockerfile").read_bytes()))
    return [
        (part["instruction"], part["value"]) for part in parser.structure if part["instruction"] != "COMMENT"
    ]


@pytest.fixture
def build() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "cloudbuild.yaml").read_text())
    return loaded


def values(instructions: list[tuple[str, str]], name: str) -> list[str]:
    return [value for instruction, value in instructions if instruction == name]


def test_the_base_is_a_deep_learning_container_and_an_argument(instructions: list[tuple[str, str]]) -> None:
    name, _, default = values(instructions, "ARG")[0].partition("=")
    assert DEEP_LEARNING_BASE.fullmatch(default)
    assert values(instructions, "FROM") == [f"${{{name}}}"]


def test_the_entry_point_is_the_trainer(instructions: list[tuple[str, str]]) -> None:
    assert values(instructions, "ENTRYPOINT") == ['["python", "-m", "trainer.task"]']
    assert values(instructions, "WORKDIR") == ["/app"]


def test_locked_packages_are_installed_with_hashes_before_the_program_is_copied(
    instructions: list[tuple[str, str]],
) -> None:
    order = [f"{name} {value}" for name, value in instructions]
    install = next(i for i, line in enumerate(order) if line.startswith("RUN") and "--require-hashes" in line)
    program = next(i for i, line in enumerate(order) if line.startswith("COPY trainer /app/trainer"))
    assert order.index("COPY trainer/installer.txt trainer/requirements.txt /opt/") < install < program


def test_it_does_not_run_as_root(instructions: list[tuple[str, str]]) -> None:
    assert values(instructions, "USER")[-1] not in {"root", "0"}


def test_everything_copied_exists_and_passes_the_ignore_file(instructions: list[tuple[str, str]]) -> None:
    kept = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    for copy in values(instructions, "COPY"):
        for source in copy.split()[:-1]:
            assert (ROOT / source).exists()
            assert source.partition("/")[0] in kept


def test_substitutions_are_declared_and_used(build: dict[str, Any]) -> None:
    # Cloud Build refuses a manual build otherwise.
    text = (ROOT / "cloudbuild.yaml").read_text().partition("steps:")[2]
    steps, declared = text.partition("substitutions:")[::2]
    used = set(re.findall(r"\$\{?(_[A-Z0-9_]+)", steps + declared.partition("options:")[2]))
    assert used == set(build["substitutions"])
    assert all(re.fullmatch(r"_[A-Z0-9_]+", name) for name in build["substitutions"])


def test_the_build_uses_the_last_image_as_cache_and_does_without_it(build: dict[str, Any]) -> None:
    pull, make, *_ = build["steps"]
    assert re.search(r"docker pull .* \|\| ", pull["args"][-1])
    assert "--cache-from" in make["args"][-1]
    assert "--build-arg BASE_IMAGE=" in make["args"][-1]


def test_the_base_of_the_build_is_that_of_the_recipe(
    build: dict[str, Any], instructions: list[tuple[str, str]]
) -> None:
    assert build["substitutions"]["_BASE_IMAGE"] == values(instructions, "ARG")[0].partition("=")[2]


def test_what_is_pushed_is_recorded_by_digest(build: dict[str, Any]) -> None:
    push = next(i for i, step in enumerate(build["steps"]) if "docker push" in str(step["args"]))
    record = next(i for i, step in enumerate(build["steps"]) if "RepoDigests" in str(step["args"]))
    assert push < record
    assert "BUILDER_OUTPUT/output" in build["steps"][record]["args"][-1]
    assert build["artifacts"]["objects"]["paths"][0] in build["steps"][record]["args"][-1]
    assert build["images"]


def test_shell_variables_are_not_taken_for_substitutions(build: dict[str, Any]) -> None:
    known = {"PROJECT_ID", "BUILD_ID", "COMMIT_SHA", "LOCATION", *build["substitutions"]}
    for step in build["steps"]:
        for argument in step["args"]:
            names = re.findall(r"(?<!\$)\$\{?(\w+)", argument.replace("$$", "\0"))
            assert set(names) <= known, argument
