"""The recipe of an image's environment, and when the stack's own will do."""

from pathlib import Path

import pytest

from trainmaster.resources import ROOT
from trainstack.jobs.images import installs, recipes
from trainstack.jobs.images.dockerfile import ImageError, read_image
from trainstack.jobs.images.recipes import Recipe, recipe_of


def recipe(tree: Path, *lines: str, base: str = "python:3") -> Recipe:
    (tree / "Dockerfile").write_text("\n".join((f"FROM {base}", "WORKDIR /app", "COPY . .", *lines, "")))
    return recipe_of(read_image(tree))


LABEL = 'LABEL other=1 trainstack.packages="nowhere-at-all packaging"'


def test_a_label_stands_for_the_run_lines(tmp_path: Path) -> None:
    image_recipe = recipe(tmp_path, "RUN make install", "RUN pip install b", LABEL)
    assert image_recipe.base.needed == ("nowhere-at-all", "packaging")
    assert (image_recipe.installs, image_recipe.omissions()) == ((), [])


def test_a_script_gets_no_package_of_the_label_and_a_note_names_the_missing_ones(tmp_path: Path) -> None:
    (tmp_path / "Dockerfile").write_text(f"FROM python:3\n{LABEL}\n")
    script_recipe = recipe_of(read_image(tmp_path), script=[])
    assert script_recipe.base.needed == ()
    (note,) = script_recipe.notes
    assert note.startswith("The image has nowhere-at-all, and the stack's own environment has not.")


def test_the_projects_own_trainer_needs_what_its_label_names() -> None:
    own = recipe_of(read_image(ROOT))
    assert "tensorflow" in own.base.needed
    assert not own.omissions()


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


def test_requirement_files_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installs, "MAX_FILES", 1)
    (tmp_path / "requirements.txt").write_text("-r more.txt\n")
    (tmp_path / "more.txt").write_text("-r requirements.txt\n")
    with pytest.raises(ImageError, match="and the files that it names are more than 1"):
        recipe(tmp_path, "RUN pip install -r requirements.txt")


@pytest.mark.parametrize("limit", ["MAX_TREE_FILES", "MAX_TREE_BYTES"])
def test_a_project_has_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(recipes, limit, 1)
    for name in ("pyproject.toml", "module.py"):
        (tmp_path / name).write_text("# text")
    with pytest.raises(ImageError, match="COPY only what belongs to the package"):
        recipe(tmp_path, "RUN pip install .")


def test_links_that_lead_in_circles_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "again").symlink_to(tmp_path)
    (tmp_path / "pyproject.toml").touch()
    assert recipe(tmp_path, "RUN pip install .").installs


def test_omitted_lines_are_listed_with_the_way_out(tmp_path: Path) -> None:
    first, second, way_out = recipe(tmp_path, f"RUN touch {'x' * 1000}", "USER 1000").omissions()
    assert len(first) < 400
    assert second == "Not done here, from the Dockerfile: USER 1000"
    assert way_out == "If the program needs them, build the image and run it with --runtime container."
