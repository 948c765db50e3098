"""References to variables in the values of a container's `env`.

Source: the comments of google.cloud.aiplatform.v1.EnvVar: `$(NAME)` expands a variable defined earlier,
an unresolvable reference stays as it is, and `$$` stands for one dollar sign.
"""

import re
from collections.abc import Iterable, Mapping

_REFERENCE = re.compile(r"\$\$|\$\(([^)]*)\)")


def expanded(variables: Iterable[tuple[str, str]], *, known: Mapping[str, str]) -> dict[str, str]:
    """The variables with their references resolved, against `known` ones and those before them in the list."""
    found: dict[str, str] = {}
    for name, value in variables:
        found[name] = _resolved(value, {**known, **found})
    return found


def _resolved(value: str, known: Mapping[str, str]) -> str:
    def text(match: re.Match[str]) -> str:
        name = match.group(1)
        return "$" if name is None else known.get(name, match.group())

    return _REFERENCE.sub(text, value)
