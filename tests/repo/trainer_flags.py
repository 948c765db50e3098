"""Writes the tables of flags in docs/reference/trainer.md from the settings: `python -m tests.repo.trainer_flags`."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from trainer.settings.setting import Setting, text_of
from trainer.settings.settings import SETTINGS
from trainer.task import WORKLOAD
from trainer.workloads import workload_named, workload_names

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "trainer.md"
BEGIN = "<!-- What follows is written by: python -m tests.repo.trainer_flags -->"
END = "<!-- Until here. -->"
HELP = re.compile(r"(?P<meaning>.*?)(?: \(default: (?P<default>.*)\))?")
WORKLOADS = [workload_named(name) for name in workload_names()]
IMAGE_FLAGS = WORKLOADS[-1].flags.keys() & WORKLOADS[0].flags.keys()


def page(text: str) -> str:
    """The page with everything between the markers written again."""
    above, _, rest = text.partition(BEGIN)
    below = rest.partition(END)[2]
    return above + "\n".join([BEGIN, "", *reference(), "", END]) + below


def reference() -> Iterator[str]:
    yield from _table({"workload": WORKLOAD, **SETTINGS})
    yield "\nWorkloads that classify images, as those of this package do, also have:\n"
    own = WORKLOADS[0].flags
    yield from _table({name: each for name, each in own.items() if name in IMAGE_FLAGS})


def _table(settings: Mapping[str, Setting]) -> Iterator[str]:
    yield "| flag | default | meaning |\n|---|---|---|"
    for name, each in settings.items():
        found = HELP.fullmatch(each.help)
        assert found is not None
        yield f"| `--{name}` | {_default(name, each, found['default'])} | {found['meaning']} |"


def _default(name: str, setting: Setting, described: str | None) -> str:
    if any(name in of.defaults for of in WORKLOADS) or len(_own_defaults(name)) > 1:
        return "the workload's"
    if described is not None:
        return described
    assert setting.default is not None, f"the help of --{name} must end with (default: …)"
    return f"`{_shown(setting.default)}`"


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else text_of(value)


def _own_defaults(name: str) -> set[object]:
    return {of.flags[name].default for of in WORKLOADS if name in of.flags}


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
