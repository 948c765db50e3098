"""`trainmaster context use` keeps a choice for later commands."""

from pathlib import Path

import pytest

from tests.command import trainmaster


@pytest.mark.parametrize("words", ["some-project/us-central1", "--clear"])
def test_a_choice_that_cannot_be_kept_is_one_line_with_the_repair(tmp_path: Path, words: str) -> None:
    (tmp_path / "settings").write_text("a file")
    unwritable = {"HOME": str(tmp_path), "TRAINMASTER_CONFIG": str(tmp_path / "settings")}
    done = trainmaster("context", "use", words, cwd=tmp_path, environment=unwritable)
    assert done.status == 2
    assert done.err == (
        f"Error: Cannot write to {str(tmp_path / 'settings')!r}: a file is in the place of a folder. "
        "Choose another folder with TRAINMASTER_CONFIG, or the context itself with TRAINMASTER_CONTEXT.\n"
    )
