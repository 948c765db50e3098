"""`trainmaster init` writes files that work, and never over others."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.command import trainmaster
from tests.ready_stack import stack_on
from trainmaster.client.submission.pack import pack_script
from trainmaster.resources import EDITOR_LINE

NO_VARIABLES: dict[str, str] = {}


def test_the_files_are_written_and_the_next_commands_printed(tmp_path: Path) -> None:
    done = trainmaster("init", cwd=tmp_path, environment=NO_VARIABLES)
    assert (done.status, done.out) == (0, "request.yaml\ntrain.py\n")
    assert done.err.splitlines() == [
        "Next:",
        "  trainmaster up --detach",
        "  trainmaster submit request.yaml --logs",
    ]
    with stack_on(tmp_path / "other/.trainmaster") as state:
        done = trainmaster("init", cwd=state.parent, environment=NO_VARIABLES)
    assert done.err == "Next:\n  trainmaster submit request.yaml --logs\n", "a stack runs there"


def test_a_new_folder_is_made_and_its_name_quoted(tmp_path: Path) -> None:
    done = trainmaster("init", "a b/c", cwd=tmp_path, environment=NO_VARIABLES)
    assert done.status == 0
    assert "trainmaster submit 'a b/c/request.yaml' --logs" in done.err
    assert (tmp_path / "a b/c/train.py").is_file()


@pytest.mark.parametrize("names", [["request.yaml"], ["request.yaml", "train.py"]])
def test_nothing_is_written_over_an_existing_request_nor_beside_it(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).write_text("mine")
    done = trainmaster("init", cwd=tmp_path, environment=NO_VARIABLES)
    assert (done.status, done.out) == (2, "")
    exist = "exists" if len(names) == 1 else "exist"
    assert f"{' and '.join(names)} already {exist}. Choose another folder: trainmaster init DIR" in done.err
    assert sorted((path.name, path.read_text()) for path in tmp_path.iterdir()) == [
        (name, "mine") for name in names
    ]


def test_beside_a_script_only_a_request_that_runs_it_is_written(tmp_path: Path) -> None:
    folder = tmp_path / "My Flowers"
    folder.mkdir()
    (folder / "train.py").write_text("mine")
    done = trainmaster("init", cwd=folder, environment=NO_VARIABLES)
    assert (done.status, done.out) == (0, "request.yaml\n")
    assert done.err.startswith("The request runs your train.py, which was not changed.")
    assert (folder / "train.py").read_text() == "mine"
    assert not (folder / ".gitignore").exists(), "it would keep a package `model` out of what submit uploads"
    request = yaml.safe_load((folder / "request.yaml").read_text())
    assert (request["model_name"], request["script"]) == ("my-flowers", {"file": "train.py"})
    assert not {"args", "champion"} & set(request), "the script may know none of the starter's"
    with_comments = (folder / "request.yaml").read_text()
    assert "\n# args: [--epochs=20]\n" in with_comments
    assert "\n# champion: {metric: val_accuracy" in with_comments


def test_editors_find_the_schema_wherever_the_folder_is_copied(tmp_path: Path) -> None:
    trainmaster("init", "one", cwd=tmp_path, environment=NO_VARIABLES)
    copy = (tmp_path / "one").rename(tmp_path / "another")
    first = (copy / "request.yaml").read_text().splitlines()[0]
    named = json.loads((copy / first.removeprefix(EDITOR_LINE)).read_text())
    assert named["$id"] == "urn:trainmaster:schema:training_request.v1"


def test_results_are_ignored_by_git_and_by_submit_unless_the_folder_has_a_gitignore(tmp_path: Path) -> None:
    trainmaster("init", cwd=tmp_path, environment=NO_VARIABLES)
    for name in ("model", "checkpoints"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "weights.bin").touch()
    assert pack_script(tmp_path / "train.py").files == ("request.yaml", "train.py")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / ".gitignore").write_text("*.csv\n")
    assert trainmaster("init", "mine", cwd=tmp_path, environment=NO_VARIABLES).status == 0
    assert (tmp_path / "mine" / ".gitignore").read_text() == "*.csv\n"


def test_a_link_that_leads_nowhere_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "train.py").symlink_to(tmp_path / "elsewhere")
    assert trainmaster("init", cwd=tmp_path, environment=NO_VARIABLES).status == 2
    assert not (tmp_path / "elsewhere").exists()


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert trainmaster("init", "file", cwd=tmp_path, environment=NO_VARIABLES).status == 2
    done = trainmaster("init", "file/below", cwd=tmp_path, environment=NO_VARIABLES)
    assert done.status == 2
    assert "Cannot write to 'file/below'" in done.err


def train(folder: Path, *args: str) -> list[str]:
    """What the script prints, with the folders that Vertex AI would name."""
    buckets = {"AIP_MODEL_DIR": "gs://models/a/model/", "AIP_CHECKPOINT_DIR": "gs://models/a/checkpoints/"}
    environment = {"PATH": os.environ["PATH"], "TRAINMASTER_GCS_ROOT": str(folder / "buckets"), **buckets}
    command = [sys.executable, "-I", str(folder / "train.py"), *args]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_the_script_trains_leaves_model_and_metrics_and_resumes_from_its_checkpoint(tmp_path: Path) -> None:
    trainmaster("init", cwd=tmp_path, environment=NO_VARIABLES)
    progress = [json.loads(line) for line in train(tmp_path, "--epochs=3")[:-1]]
    assert [each["epoch"] for each in progress] == [1, 2, 3]
    assert progress[-1]["loss"] < progress[0]["loss"]
    model = tmp_path / "buckets/models/a/model"
    assert json.loads((model / "metrics.json").read_text())["val_accuracy"] > 0.95
    assert set(json.loads((model / "model.json").read_text())) == {"x", "y", "bias"}
    first, *others, _ = train(tmp_path, "--epochs=5")
    assert first == "continuing after epoch 3"
    assert [json.loads(line)["epoch"] for line in others] == [4, 5]
