"""What requirements.txt and pyproject.toml of a source tree ask for where no RUN line installs it."""

from pathlib import Path

import pytest

from trainmaster.local.jobs.images.dockerfile import ImageError, read_image
from trainmaster.local.jobs.images.recipes import Recipe, recipe_of

PROJECT = '[project]\nname = "own"\ndependencies = ["pandas>=2", "tqdm"]\n'


def recipe(tree: Path, *lines: str, base: str = "python:3", **files: str) -> Recipe:
    for name, text in files.items():
        (tree / {"requirements": "requirements.txt", "project": "pyproject.toml"}[name]).write_text(text)
    (tree / "Dockerfile").write_text("\n".join((f"FROM {base}", "WORKDIR /app", *lines, "")))
    return recipe_of(read_image(tree))


@pytest.mark.parametrize(
    "lines",
    [
        (),
        ("RUN apt-get update && apt-get install -y libgl1",),
        ("RUN pip install --upgrade pip",),
        ("RUN useradd worker", "USER worker"),
        ("RUN pip config set global.timeout 9 && apt-get install -y python3-pip && pip uninstall -y tqdm",),
    ],
)
def test_requirements_are_needed_where_no_run_line_installs_any_package(
    tmp_path: Path, lines: tuple[str, ...]
) -> None:
    found = recipe(tmp_path, "COPY . .", *lines, requirements="tqdm\npandas  # tables\n")
    assert found.needs == ("tqdm", "pandas")
    (note,) = found.notes
    assert note == (
        "The packages of requirements.txt are installed here although no RUN line of the Dockerfile installs them: the "
        "image that `docker build` makes would lack them. Add to the Dockerfile: RUN pip install -r requirements.txt"
    )


def test_a_requirement_file_that_no_line_copies_needs_that_line_too(tmp_path: Path) -> None:
    (note,) = recipe(tmp_path, requirements="tqdm\n").notes
    assert note.endswith("COPY requirements.txt ./ and then RUN pip install -r requirements.txt")


def test_a_projects_dependencies_are_needed_where_there_is_no_requirement_file(tmp_path: Path) -> None:
    found = recipe(tmp_path, "COPY . .", project=PROJECT)
    assert found.needs == ("pandas>=2", "tqdm")
    assert found.notes[0].endswith("Add to the Dockerfile: RUN pip install 'pandas>=2' tqdm")
    found = recipe(tmp_path, "COPY . .", project=PROJECT, requirements="tqdm\n")
    assert found.needs == ("tqdm",)


def test_a_long_list_of_dependencies_is_installed_with_its_project(tmp_path: Path) -> None:
    many = ", ".join(f'"package-{number}"' for number in range(50))
    found = recipe(tmp_path, project=f"[project]\ndependencies = [{many}]\n")
    assert found.notes[0].endswith("Add to the Dockerfile: RUN pip install .")


@pytest.mark.parametrize(
    "project",
    [
        "[tool.ruff]\nline-length = 100\n",
        '[project]\nname = "own"\n',
        '[tool.poetry.dependencies]\npython = "^3.11"\n',
        "tool = 1\nproject = 2\n",
    ],
)
def test_a_project_file_without_dependencies_asks_for_nothing(tmp_path: Path, project: str) -> None:
    found = recipe(tmp_path, project=project)
    assert (found.needs, found.notes) == ((), ())


@pytest.mark.parametrize(
    "project",
    [
        '[project]\nname = "own"\ndynamic = ["version", "dependencies"]\n',
        '[tool.poetry.dependencies]\npython = "^3.11"\npandas = "^2"\n',
    ],
)
def test_dependencies_that_only_the_build_backend_knows_are_pointed_at(tmp_path: Path, project: str) -> None:
    found = recipe(tmp_path, project=project)
    assert found.needs == ()
    (note,) = found.notes
    assert note == (
        "No RUN line of the Dockerfile installs the dependencies of pyproject.toml: programs may lack them, here and in "
        "the image that `docker build` makes. Add to the Dockerfile: RUN pip install ."
    )


def test_what_the_installing_run_lines_leave_out_is_named_and_not_installed(tmp_path: Path) -> None:
    found = recipe(
        tmp_path, "COPY . .", "RUN pip install Tqdm==4", base="tensorflow/tensorflow:2.16.1",
        requirements="tqdm\ntensorflow\npandas>=2\nscikit_learn\nnowhere; python_version < '3'\n-r gone.txt\n",
    )  # fmt: skip
    assert found.needs == ("tensorflow", "Tqdm==4")
    (note,) = found.notes
    assert note == (
        "No RUN line of the Dockerfile installs pandas, scikit-learn of requirements.txt: programs may lack them, here "
        "and in the image that `docker build` makes. Add to the Dockerfile: RUN pip install -r requirements.txt"
    )


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("RUN pip install poetry && poetry install --no-root", ["poetry installs may be missing here. Write `RUN pip install .`"]),
        ("RUN pdm install", ["`RUN pip install -r requirements.txt` with the file that `pdm export` writes; or run"]),
        ("RUN pipenv install", ["the file that `pipenv requirements` writes; or run the built image"]),
        ("RUN conda env update -f env.yml", ["conda installs may"]),
        ("RUN conda install -y tqdm", ["conda installs may be missing here. Write `RUN pip install …` with the names"]),
        ("RUN micromamba install tqdm && conda update tqdm", ["micromamba installs", "conda installs"]),
        ("RUN pip install --target /opt/x tqdm", []),
    ],
)  # fmt: skip
def test_an_installer_that_is_not_run_here_is_named_with_what_to_write_instead(
    tmp_path: Path, line: str, instead: list[str]
) -> None:
    found = recipe(tmp_path, "COPY . .", line, requirements="tqdm\n")
    assert "tqdm" not in (found.needs or ())
    assert line.removeprefix("RUN ").rpartition("&& ")[2] in found.omissions()[0]
    assert len(found.notes) == len(instead)
    assert all(words in note for words, note in zip(instead, found.notes, strict=True))


@pytest.mark.parametrize(
    "line",
    ["RUN pip install -r requirements.txt", "RUN pip install .", "RUN pip install tqdm pandas", "RUN make -f requirements.txt"],
)  # fmt: skip
def test_nothing_is_said_where_run_lines_leave_nothing_out(tmp_path: Path, line: str) -> None:
    assert recipe(tmp_path, "COPY . .", line, requirements="tqdm\n", project=PROJECT).notes == ()


@pytest.mark.parametrize(
    ("project", "expected"),
    [
        ("[project", "pyproject.toml cannot be read: "),
        ("[project]\ndependencies = 'tqdm'\n", "project.dependencies is 'tqdm'; expected a list of strings"),
        ("[project]\ndynamic = [1]\n", r"project.dynamic is \[1\]; expected a list of strings"),
        ("# " + "x" * 256 * 1024, "has more than 262144 bytes"),
        (".".join("a" * 2000) + " = 1", "has a line with more than 1000 dots"),
        ("a = " + "[" * 5000, "cannot be read: maximum recursion depth"),
    ],
)
def test_a_broken_project_file_is_refused_only_where_it_is_needed(
    tmp_path: Path, project: str, expected: str
) -> None:
    with pytest.raises(ImageError, match=expected):
        recipe(tmp_path, project=project)
    assert recipe(tmp_path, "RUN pip install tqdm").notes == ()


def test_a_note_names_a_bounded_number_of_packages(tmp_path: Path) -> None:
    text = "".join(f"package-{number}\n" for number in range(100))
    (note,) = recipe(tmp_path, "RUN pip install tqdm", requirements=text).notes
    assert "package-7, … of" in note
    assert "package-8" not in note
