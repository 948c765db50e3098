"""Finding the stack that runs on a folder."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ready_stack import announce, stop
from trainstack.find import (
    DEFAULT_STATE,
    NoStack,
    environment_on,
    nearest_state,
    read_stack_env,
    register_stack,
    registered_stack,
    was_stopped,
)


def test_stack_env_is_read_as_a_shell_reads_it() -> None:
    text = "# endpoints\nexport A=http://127.0.0.1:1\nexport B='two words'\n\n"
    assert read_stack_env(text) == {"A": "http://127.0.0.1:1", "B": "two words"}


def test_a_folder_without_a_stack_is_reported_with_the_command_that_starts_one(tmp_path: Path) -> None:
    with pytest.raises(NoStack, match=f"No stack is ready .* --state '{tmp_path}/my state'"):
        environment_on(tmp_path / "my state")


def test_a_stopped_stack_is_distinguished_from_one_that_was_killed_or_never_ran(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = tmp_path / ".trainmaster"
    state.mkdir()
    announce(state, {})
    assert not was_stopped(state)
    stop(state)
    assert was_stopped(state)
    with pytest.raises(NoStack, match=f"was stopped. Start it again: .* --state {state}$"):
        environment_on(state)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NoStack, match=r"was stopped\. Start it again: trainmaster up --detach$"):
        environment_on(state)
    announce(state, {}).unlink()
    assert not was_stopped(state), "it was killed, and the next one is starting"


def test_a_stack_answers_or_what_it_left_behind_is_reported(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        announce(tmp_path, {"LOGGING_EMULATOR_HOST": address})
        assert environment_on(tmp_path) == {"LOGGING_EMULATOR_HOST": address}
    with pytest.raises(NoStack, match=f"no longer answers at '{address}'. Start it again: trainmaster up"):
        environment_on(tmp_path)


def test_a_killed_stack_is_reported_even_if_another_one_answers_at_its_address(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = {"LOGGING_EMULATOR_HOST": f"http://127.0.0.1:{listening.getsockname()[1]}"}
        announce(tmp_path, address, owner=ended.pid)
        with pytest.raises(NoStack, match="was killed"):
            environment_on(tmp_path)


@pytest.mark.parametrize("lock", ["", "{", "[]", '{"pid": "x"}', '{"pid": null}', '{"pid": 1e99}'])
def test_a_lock_that_names_no_process_is_one_of_a_killed_stack(tmp_path: Path, lock: str) -> None:
    announce(tmp_path, {"LOGGING_EMULATOR_HOST": "http://127.0.0.1:1"})
    (tmp_path / "lock").write_text(lock)
    with pytest.raises(NoStack, match="was killed"):
        environment_on(tmp_path)


def test_a_stack_is_on_the_list_while_it_is_ready_and_one_that_was_killed_is_removed(tmp_path: Path) -> None:
    states = [tmp_path / name for name in ("here", "there", "gone")]
    for state in states:
        state.mkdir()
        (state / "stack.env").touch()
    settings = tmp_path / "settings"
    register_stack(states[2], settings)
    (states[2] / "stack.env").unlink()
    with registered_stack(states[0], settings), registered_stack(states[1], settings):
        listed = {each.read_text() for each in (settings / "stacks").iterdir()}
        assert listed == {f"{states[0]}\n", f"{states[1]}\n"}
    assert not list((settings / "stacks").iterdir())


def test_settings_that_cannot_be_written_do_not_prevent_a_stack(tmp_path: Path) -> None:
    (tmp_path / "settings").write_text("a file")
    with registered_stack(tmp_path, tmp_path / "settings"):
        pass


def test_another_users_stack_in_a_parent_folder_is_not_this_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, below = tmp_path / DEFAULT_STATE, tmp_path / "mine"
    state.mkdir()
    below.mkdir()
    announce(state, {})
    assert nearest_state(below) == state
    monkeypatch.setattr(os, "getuid", lambda: state.stat().st_uid + 1)
    assert nearest_state(below) is None
    assert nearest_state(tmp_path) == DEFAULT_STATE, "who works in a folder trusts it"
