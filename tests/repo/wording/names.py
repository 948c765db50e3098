"""Names that were replaced: no code, schema or document may bring them back."""

import re

REPLACED: dict[str, str] = {}
"""Each old identifier with the new one. Matched as a whole word, in code and in prose."""


def replaced_names(content: str) -> list[tuple[int, str]]:
    """Line, counted from one, and name of each old name in a file."""
    if not REPLACED:
        return []
    found = _ANY.finditer(content)
    return [(content.count("\n", 0, match.start()) + 1, match.group()) for match in found]


_ANY = re.compile(r"\b(?:" + "|".join(map(re.escape, REPLACED)) + r")\b")
