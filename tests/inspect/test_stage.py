"""What a smoke run reads of its replicas."""

import os
from pathlib import Path

from trainmaster.inspect.smoke.stage import MAX_READ_BYTES, Stage


def test_of_output_of_any_size_the_end_is_read(tmp_path: Path) -> None:
    stage = Stage(base=tmp_path, metric="", uses_uris=False)
    (tmp_path / "chief" / "metrics").mkdir(parents=True)
    for path, line in (
        (stage.output("chief", "stderr"), b"ValueError: the last line\n"),
        (tmp_path / "chief" / "metrics" / "output.metrics", b'{"accuracy": "0.5"}\n'),
    ):
        with path.open("wb") as file:
            file.truncate(1 << 40)  # takes no room
            file.seek(0, os.SEEK_END)
            file.write(b"\n" + line)
    errors = stage.errors("chief")
    assert len(errors) == MAX_READ_BYTES
    assert errors.endswith("\nValueError: the last line\n")
    assert stage.reported("chief") == {"accuracy": "0.5"}
