"""Screens of the command, kept as text for people to review: tests/cli/screens/*.txt.

TRAINMASTER_WRITE_SCREENS=1 writes them as they are now; review the difference before you commit it.
"""

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "screens"
WRITE = "TRAINMASTER_WRITE_SCREENS"


def assert_screen(name: str, text: str) -> None:
    """`text` is what the file of this name shows."""
    file = FOLDER / f"{name}.txt"
    if os.environ.get(WRITE):
        FOLDER.mkdir(exist_ok=True)
        file.write_text(text)
    assert file.is_file(), f"no screen {file.name}; write it: {WRITE}=1"
    assert text == file.read_text(), (
        f"{file.name} shows something else. If the new screen is right: {WRITE}=1"
    )
