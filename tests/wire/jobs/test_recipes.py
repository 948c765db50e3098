"""What an image's environment is made from, and when the stack's own will do."""

from importlib.metadata import distributions
from pathlib import Path

import pytest

from trainmaster.local.jobs.images import recipes, requirements
from trainmaster.local.jobs.images.dockerfile import ImageError, read_image
from trainmaster.local.jobs.images.package_runner import by_name
from trainmaster.local.jobs.images.recipes import Recipe, recipe_of
from trainmaster.resources import ROOT


def recipe(tree: Path, *lines: str, base: str = "python:3") -> Recipe:
    (tree / "Dockerfile").write_text("\n".join((f"FROM {base}", "WORKDIR /app", "COPY . .", *lines, "")))
    return recipe_of(read_image(tree))


def is_met(found: Recipe) -> bool:
    return found.is_met_by(by_name(distributions()))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("packaging>=20 --hash=sha256:00\n# a comment\nPyYAML  # and one more\n", True),
        ("nowhere; python_version < '3'\n", True),
        ("packaging<1\n", False),
        ("nowhere-at-all\n", False),
        ("packaging @ https://example.com/packaging.whl\n", False),
        ("--index-url https://example.com/s\npackaging\n", False),
        ("./lib\n", False),
        ("-r more.txt\n", False),
    ],
)
def test_the_stacks_own_environment_will_do_where_it_has_what_is_asked_for(
    tmp_path: Path, text: str, expected: bool
) -> None:
    (tmp_path / "more.txt").write_text("nowhere-at-all\n")
    (tmp_path / "requirements.txt").write_text(text)
    assert is_met(recipe(tmp_path, "RUN pip install -r requirements.txt")) is expected


def test_a_base_without_its_framework_here_needs_an_environment(tmp_path: Path) -> None:
    found = recipe(tmp_path, base="pytorch/pytorch:2.4.0-cuda12.1-cudnn9-runtime")
    assert not found.is_met_by({})


def test_the_projects_own_trainer_needs_what_its_extra_brings() -> None:
    found = recipe_of(read_image(ROOT))
    assert found.needs is not None
    assert "tensorflow" in found.needs
    assert not found.not_done


def test_the_key_is_that_of_the_content_alone(tmp_path: Path) -> None:
    def key(folder: str, text: str = "a\n", more: str = "b\n", code: str = "") -> str:
        tree = tmp_path / folder
        tree.mkdir(exist_ok=True)
        (tree / "requirements.txt").write_text("# a comment\n" + text)
        (tree / "more.txt").write_text(more)
        (tree / "lib.py").write_text(code)
        return recipe(tree, "RUN pip install -r requirements.txt").key

    assert key("one", code="1") == key("two", code="2")
    assert key("one", "-r more.txt\n") != key("one", "-r more.txt\n", more="c\n")
    assert key("one", "./\n", code="1") != key("one", "./\n", code="2")


@pytest.mark.parametrize(
    ("limit", "value", "expected"),
    [
        ("MAX_BYTES", 10, "requirements.txt has more than 10 bytes"),
        ("MAX_FILES", 1, "and the files that it names are more than 1"),
    ],
)
def test_requirement_files_have_limits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int, expected: str
) -> None:
    monkeypatch.setattr(requirements, limit, value)
    (tmp_path / "requirements.txt").write_text("-r more.txt\n" + "packaging\n" * (limit == "MAX_BYTES"))
    (tmp_path / "more.txt").write_text("-r requirements.txt\n" if limit == "MAX_FILES" else "")
    with pytest.raises(ImageError, match=expected):
        recipe(tmp_path, "RUN pip install -r requirements.txt")


@pytest.mark.parametrize("limit", ["MAX_PROJECT_FILES", "MAX_PROJECT_BYTES"])
def test_a_project_has_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(recipes, limit, 1)
    for name in ("pyproject.toml", "module.py"):
        (tmp_path / name).write_text("# text")
    with pytest.raises(ImageError, match="COPY only what belongs to the package"):
        recipe(tmp_path, "RUN pip install .")


def test_links_that_lead_in_circles_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "again").symlink_to(tmp_path)
    (tmp_path / "pyproject.toml").touch()
    assert recipe(tmp_path, "RUN pip install .").needs is None


def test_what_is_not_done_is_listed_in_notes_of_bounded_number_and_length(tmp_path: Path) -> None:
    found = recipe(tmp_path, *(f"RUN touch {number} {'x' * 1000}" for number in range(30)))
    notes = found.omissions()
    assert len(notes) == 21
    assert max(map(len, notes)) < 400
    assert notes[-1] == "… and 10 more of its lines."
