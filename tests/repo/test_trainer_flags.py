"""The trainer's page says of each flag what the trainer says."""

import re

from tests.repo.trainer_flags import BEGIN, END, PAGE, page
from trainer.settings.settings import SETTINGS
from trainer.workloads import workload_named

RENEW = "write it again: python -m tests.repo.trainer_flags"


def test_names_defaults_and_meanings_of_flags_are_written_from_the_settings() -> None:
    text = PAGE.read_text()
    assert (text.count(BEGIN), text.count(END)) == (1, 1)
    assert page(text) == text, RENEW


def test_every_flag_has_one_row_with_its_default_and_meaning() -> None:
    table = PAGE.read_text().partition(BEGIN)[2].partition(END)[0]
    rows = re.findall(r"^\| `--(\w+)` \| [^|]+ \| [^|]+ \|$", table, re.MULTILINE)
    assert sorted(rows) == sorted(["workload", *SETTINGS, *workload_named("resnet50").flags])
