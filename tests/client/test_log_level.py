"""The severity of a line on standard error is what the line says itself."""

from dataclasses import replace

import pytest

from tests.client.test_lanes import line
from trainmaster.client.logs.line import level_of, shortened_line

LEVELS = {
    "INFO:root:rows 3000": "INFO",
    "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR": "WARNING",
    "[INFO|trainer.py:2134] 2026-11-26 10:00:00,123 >> ***** Running training *****": "INFO",
    "2026-11-26 10:00:00,123 WARNING rows are missing": "WARNING",
    "2026-11-26 10:00:00,123 - train - ERROR - no rows": "ERROR",
    "2026-11-26 10:00:00.123 | INFO     | __main__:<module>:3 - rows": "INFO",
    "2026-11-26 10:00:00.123456: W tensorflow/core/framework/op_kernel.cc:1] x": "WARNING",
    "I0000 00:00:1795712569.703895   12603 port.cc:153] oneDNN custom operations are on.": "INFO",
    "E0000 00:00:1795712569.703895   12603 cuda_driver.cc:266] failed call": "ERROR",
    "/opt/venv/lib/python3.11/site-packages/xgboost/core.py:748: FutureWarning: Pass `evals`": "WARNING",
    "Traceback (most recent call last):": None,
    "ValueError: INFO: is no level": None,
    "2026 rows": None,
    "INFOrmation: x": None,
    "": None,
}


@pytest.mark.parametrize("text", LEVELS)
def test_a_line_has_the_level_of_its_own_prefix(text: str) -> None:
    assert level_of(text) == LEVELS[text]
    wrapped = {"message": text, "attrs": {"tag": "workerpool0-0"}, "levelname": "ERROR"}
    for shown in (written := replace(line(1, wrapped), severity="ERROR"), shortened_line(written)):
        assert shown.level == (LEVELS[text] or "DEFAULT")
    assert replace(line(1, text), severity="ERROR").level == "ERROR"
