"""Every address of the console, with its variables filled in."""

import re
from collections.abc import Iterator

from trainmaster.web.pages import SUBJECTS

_VARIABLE = re.compile(r"\{\w+(?::\w+)?\}")


def filled(path: str, value: str) -> str:
    """The path with `value` for each of its variables."""
    return _VARIABLE.sub(lambda _: value, path)


def page_paths() -> Iterator[str]:
    for subject in SUBJECTS:
        yield from (each.path for each in subject.pages)


def api_paths() -> Iterator[str]:
    for subject in SUBJECTS:
        yield from (each.path for each in subject.api)


def action_paths() -> Iterator[str]:
    for subject in SUBJECTS:
        yield from (each.path for each in subject.actions)
