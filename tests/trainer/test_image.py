"""The image's recipe. It is followed for real in tests/image."""

import re
from io import BytesIO
from pathlib import Path

import pytest
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
