"""A ready stack names the next commands, as they work in the current folder."""

from pathlib import Path

import pytest

from tests.ready_stack import stack_on
from trainmaster.cli.stack.detach import data_bucket, next_steps
from trainmaster.cli.stack.up import welcome_text
from trainmaster.client.context import keep_choice


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TRAINMASTER_CONFIG", str(tmp_path / "settings"))
    monkeypatch.delenv("TRAINMASTER_CONTEXT", raising=False)
    return tmp_path / "settings"


def commands_for(state: Path) -> list[str]:
    return [command for _, command in next_steps(state)]


REQUEST = "trainmaster submit request.yaml --logs"


@pytest.mark.parametrize(
    ("files", "first"),
    [
        ([], ["trainmaster init", REQUEST]),
        (["request.yaml"], [REQUEST]),
        (["request.yaml", "train.py"], [REQUEST]),
        (["model.py", "train.py"], ["trainmaster submit --script train.py --logs"]),
        (["my fit.py"], ["trainmaster submit --script 'my fit.py' --logs"]),
        (["one.py", "two.py"], ["trainmaster init", REQUEST]),
    ],
)
def test_the_first_run_starts_from_what_lies_in_the_folder(
    files: list[str], first: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for file in files:
        Path(file).touch()
    assert f"In another shell: {', then '.join(first)}. " in welcome_text(Path(".trainmaster"))
    with stack_on(Path(".trainmaster")) as state:
        commands = commands_for(state)
    assert commands[: commands.index("trainmaster ls")] == first


def test_the_data_bucket_is_named_with_its_folder_if_the_stack_has_one(tmp_path: Path) -> None:
    bucket = {"TRAINMASTER_DATA_BUCKET": "p-data"}
    assert data_bucket(tmp_path, bucket) == [], "its storage runs elsewhere"
    folder = tmp_path / "storage/buckets/p-data"
    folder.mkdir(parents=True)
    assert data_bucket(tmp_path, bucket) == [("Your data", f"gs://p-data, the folder {folder}")]
    assert data_bucket(tmp_path, {}) == []


@pytest.mark.parametrize(
    ("state", "stops"),
    [(".trainmaster", "trainmaster down,"), ("my stack", "trainmaster down --state 'my stack',")],
)
def test_a_stack_in_the_foreground_says_what_stops_it(state: str, stops: str) -> None:
    beside = "The deployment b: --context local/b. Ctrl-C here"
    assert f"{beside}, or {stops} stops the stack" in welcome_text(Path(state), ["b"])


def test_they_choose_the_stack_where_the_folder_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    with stack_on(Path("my stack")) as state:
        assert "trainmaster ls" in commands_for(state)
        with stack_on(Path(".trainmaster")) as other:
            assert "trainmaster ls" in commands_for(other)
            assert "trainmaster ls --context local:'my stack'" in commands_for(state)
        keep_choice("my-project/us-central1", settings)
        assert {
            "trainmaster submit request.yaml --logs --context local:'my stack'",
            "trainmaster ls --context local:'my stack'",
            "trainmaster down --state 'my stack'",
        } <= set(commands_for(state))
