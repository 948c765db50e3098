"""A ready stack names the next commands: `trainmaster init` only in a folder without a request."""

from pathlib import Path

import pytest
from rich.table import Table

from trainmaster.cli.stack.detach import next_steps
from trainmaster.local.stack.table import show


@pytest.mark.parametrize("has_request", [False, True])
def test_a_folder_with_a_request_needs_no_first_one(
    *, has_request: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    if has_request:
        Path("request.yaml").touch()
    show(Table())
    welcome = capsys.readouterr().out
    commands = [command for _, command in next_steps(Path(".trainmaster"))]
    assert ("trainmaster init" in commands) is ("trainmaster init" in welcome) is not has_request
    assert "trainmaster submit request.yaml --logs" in commands
    assert "trainmaster submit request.yaml --logs" in welcome
