"""A state folder belongs to one stack at a time, and what it tells is whole."""

import fcntl
import os
import threading
from contextlib import closing
from pathlib import Path

import pytest

from tests.ready_stack import announce
from tests.stack.waiting import wait_until
from trainmaster.cli.command import main
from trainmaster.cli.exits import ExitStatus
from trainstack.find import read_stack_env, was_stopped
from trainstack.process.processes import ProcessGuard
from trainstack.stack.errors import StateError
from trainstack.stack.state import StateFolder, owner_of, refuse_other_project


def test_a_claimed_folder_is_refused_to_others_and_free_after_close(tmp_path: Path) -> None:
    first = StateFolder(tmp_path / "state")
    first.own(watcher_pid=0)
    ours = rf"already running on '{tmp_path}/state' \(process {os.getpid()}\).* down --state"
    with pytest.raises(StateError, match=f"(?s){ours}"):
        StateFolder(tmp_path / "state")
    assert owner_of(tmp_path / "state") is not None
    first.close()
    assert owner_of(tmp_path / "state") is None
    StateFolder(tmp_path / "state").close()


def test_a_stopped_owner_is_distinguished_from_a_killed_one_until_the_next_start(tmp_path: Path) -> None:
    stopped = StateFolder(tmp_path)
    stopped.own(watcher_pid=0)
    stopped.close()
    assert was_stopped(tmp_path)
    announce(tmp_path, {}, owner=1)  # the next one, and it is killed
    StateFolder(tmp_path).close()  # as `up --detach` does before it starts the stack
    assert not (tmp_path / "stack.env").exists()
    assert not was_stopped(tmp_path)


def test_stack_env_is_read_back_as_written_and_goes_with_the_stack(tmp_path: Path) -> None:
    variables = {"A": "plain", "B": "with space", "C": "it's $HOME"}
    state = StateFolder(tmp_path)
    state.announce(variables)
    assert read_stack_env(state.env_path.read_text()) == variables
    state.close()
    assert not state.env_path.exists()


def test_what_a_killed_stack_announced_is_withdrawn_by_the_next(tmp_path: Path) -> None:
    (tmp_path / "stack.env").write_text("export A=stale\n")
    state = StateFolder(tmp_path)
    assert not state.env_path.exists()
    state.close()


@pytest.mark.parametrize("detach", [["--detach"], []])
def test_a_folder_with_files_that_are_not_a_stacks_is_refused_and_stays_as_it_is(
    tmp_path: Path, detach: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "my project"
    folder.mkdir(mode=0o755)
    (folder / "train.py").touch()
    assert main(["up", *detach, "--state", str(folder)]) == ExitStatus.FINDING
    refusal = capsys.readouterr().err
    assert f"The state folder {str(folder)!r} holds files that are not a stack's: train.py. " in refusal
    assert f"for example --state '{folder}/.trainmaster'." in refusal
    assert [each.name for each in folder.iterdir()] == ["train.py"]
    assert folder.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("name", ["a file of tools", "an earlier stack", "a demo beside it"])
def test_a_folder_with_hidden_files_or_a_stack_or_of_the_default_name_is_taken(
    tmp_path: Path, name: str
) -> None:
    file = {
        "a file of tools": ".gitignore",
        "an earlier stack": "ports.json",
        "a demo beside it": ".trainmaster/demo.log",
    }[name]
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).touch()
    StateFolder((tmp_path / file).parent).close()


@pytest.mark.parametrize(
    ("project", "region"), [("other-project", "us-central1"), ("our-project", "europe-west4")]
)
@pytest.mark.parametrize("detach", [["--detach"], []])
def test_a_stack_of_another_project_or_region_is_refused_with_those_of_the_folder(
    tmp_path: Path, project: str, region: str, detach: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    state = StateFolder(tmp_path)
    state.keep_project("our-project", "us-central1")
    state.close()
    words = ["up", *detach, "--state", str(tmp_path), "--project", project, "--region", region]
    assert main(words) == ExitStatus.FINDING
    refusal = capsys.readouterr().err
    assert "holds the runs of project our-project, region us-central1" in refusal
    assert f"trainmaster up --state {tmp_path} --project our-project --region us-central1" in refusal
    assert not (tmp_path / "stack.log").exists()


@pytest.mark.parametrize("text", [None, "", "{", "[]", "{}", '{"project": "own", "region": "us-central1"}'])
def test_the_project_of_the_folder_is_accepted_and_so_is_a_folder_that_names_none(
    tmp_path: Path, text: str | None
) -> None:
    if text is not None:
        (tmp_path / "project.json").write_text(text)
    refuse_other_project(tmp_path, "own", "us-central1")


def test_ports_are_read_back_and_a_damaged_file_of_them_is_ignored(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)
    assert state.ports() == {}
    state.keep_ports({"storage": 4443})
    assert state.ports() == {"storage": 4443}
    (tmp_path / "ports.json").write_text('{"stor')
    assert state.ports() == {}
    state.close()


def test_a_folder_whose_watcher_still_ends_processes_is_waited_for(tmp_path: Path) -> None:
    state = StateFolder(tmp_path)
    with closing(ProcessGuard()) as guard:
        # A process that has just started may not have a command line yet; that tells it apart from others.
        wait_until(lambda: Path(f"/proc/{guard.watcher_pid}/cmdline").read_bytes())
        state.own(watcher_pid=guard.watcher_pid)
        state.close()
        claimed = threading.Event()

        def claim() -> None:
            StateFolder(tmp_path).close()
            claimed.set()

        claiming = threading.Thread(target=claim)
        claiming.start()
        assert not claimed.wait(0.3)
    claiming.join(20)
    assert claimed.is_set()


def test_a_process_that_asks_for_the_owner_keeps_no_stack_from_claiming_the_folder(tmp_path: Path) -> None:
    StateFolder(tmp_path).close()
    asking = os.open(tmp_path / "lock", os.O_RDONLY)
    fcntl.flock(asking, fcntl.LOCK_SH)  # as `owner_of` does for a moment
    answered = threading.Timer(0.2, os.close, [asking])
    answered.start()
    try:
        StateFolder(tmp_path).close()
    finally:
        answered.join()
