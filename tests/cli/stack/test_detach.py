"""A second `up --detach` on a folder waits for the stack that has claimed it, for a limited time."""

from pathlib import Path

import pytest

from trainmaster.cli.exits import Stop
from trainmaster.cli.stack import detach
from trainstack.stack.errors import StateError
from trainstack.stack.state import StateFolder


def test_a_stack_that_does_not_get_ready_is_named_with_how_to_stop_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detach, "START_DEADLINE_S", 0)
    claimed = StateFolder(tmp_path)
    claimed.own(watcher_pid=0)
    try:
        with pytest.raises(Stop, match="is not ready after 0 s") as refused:
            detach.detach_stack(tmp_path, [])
    finally:
        claimed.close()
    assert refused.value.status == 1
    assert f"trainmaster down --state {tmp_path}" in refused.value.message


def test_a_folder_that_cannot_be_written_is_refused_before_a_process_starts(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StateError, match="Cannot write to the state folder"):
        detach.detach_stack(tmp_path / "file" / "state", [])
