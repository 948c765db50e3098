"""Finding the stack that runs on a folder."""

import socket
from pathlib import Path

import pytest

from trainmaster.client.stack import NoStack, environment_on, read_stack_env


def test_stack_env_is_read_as_a_shell_reads_it() -> None:
    text = "# endpoints\nexport A=http://127.0.0.1:1\nexport B='two words'\n\n"
    assert read_stack_env(text) == {"A": "http://127.0.0.1:1", "B": "two words"}


def test_a_folder_without_a_stack_is_reported_with_the_command_that_starts_one(tmp_path: Path) -> None:
    with pytest.raises(NoStack, match=f"No stack is ready .* --state '{tmp_path}/my state'"):
        environment_on(tmp_path / "my state")


def test_a_stack_answers_or_what_it_left_behind_is_reported(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        (tmp_path / "stack.env").write_text(f"export LOGGING_EMULATOR_HOST={address}\n")
        assert environment_on(tmp_path) == {"LOGGING_EMULATOR_HOST": address}
    with pytest.raises(NoStack, match=f"no longer answers at '{address}'. Start it again: trainmaster up"):
        environment_on(tmp_path)
