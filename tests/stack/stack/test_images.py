"""Source trees that provide images, added while a stack runs and kept for the next one."""

import threading
from pathlib import Path

import pytest

from trainmaster.cli.command import main
from trainstack.stack.state import current_images, provide, provided_trees

URI = "example.com/p/own"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "tree"
    folder.mkdir()
    (folder / "Dockerfile").write_text("FROM python:3\nCMD true\n")
    return folder


def test_an_image_that_is_provided_while_a_stack_runs_is_there_at_once_and_for_the_next(
    tmp_path: Path, tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    state = tmp_path / "state"
    assert provided_trees(state) == {}
    assert main(["stack", "provide", f"{URI}=tree", "--state", str(state)]) == 0
    assert capsys.readouterr().out == f"{tree} provides the image {URI}, starting with the next job.\n"
    assert provided_trees(state) == {URI: tree}


def test_a_user_may_provide_the_projects_own_image(tmp_path: Path, tree: Path) -> None:
    provide(tmp_path, {URI: tree})
    assert current_images(tmp_path, {URI: tmp_path})[URI] == tree


def test_folders_that_cannot_provide_images_are_refused_at_once_and_none_is_kept(
    tmp_path: Path, tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    words = [f"{URI}={tree}", f"a={tmp_path / 'missing'}", f"b={tmp_path / 'empty'}"]
    assert main(["stack", "provide", *words, "--state", str(tmp_path / "state")]) == 2
    said = capsys.readouterr().err
    assert "Image a: the directory" in said
    assert "Image b: no Dockerfile can be read at" in said
    assert not (tmp_path / "state").exists()


def test_images_that_are_provided_at_the_same_moment_are_all_kept(tmp_path: Path, tree: Path) -> None:
    threads = [threading.Thread(target=provide, args=(tmp_path, {f"{URI}{n}": tree})) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(provided_trees(tmp_path)) == 20


@pytest.mark.parametrize("text", ["{", "[]", '{"a": 1}'])
def test_a_damaged_file_is_refused_with_the_repair(
    tmp_path: Path, tree: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (tmp_path / "images.json").write_text(text)
    assert main(["stack", "provide", f"{URI}={tree}", "--state", str(tmp_path)]) == 1
    assert "images.json cannot be read" in (said := capsys.readouterr().err)
    assert "Remove it and provide the images again." in said
