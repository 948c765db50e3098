"""Partial responses: the fields of an answer that a request's `fields` selects.

Source: https://cloud.google.com/storage/docs/json_api#partial-response
"""

import re
from typing import Any

from trainstack.storage.objects.errors import invalid

MAX_CHARACTERS = 2000
"""Of a mask: reading takes time with the square of its length."""
_PART = re.compile(r"([\w*-]*)([(),/])")

Selection = dict[str, Any]
"""The selections inside each selected name; an empty one selects everything. `*` stands for every name."""


def partial(tree: Any, mask: str) -> Any:
    """A resource with the selected fields alone.

    Raises:
        RefusedError: 400, the mask is not one, or has more than MAX_CHARACTERS.
    """
    if len(mask) > MAX_CHARACTERS:
        raise invalid(f"Invalid field selection: it has more than {MAX_CHARACTERS} characters.")
    selection = _read(re.sub(r"\s*([(),/])\s*", r"\1", mask.strip()) + ",")
    if selection is None:
        raise invalid(f"Invalid field selection {mask!r}.")
    return _select(tree, selection)


def _read(mask: str) -> Selection | None:
    """The selection of a mask such as `a/b,c(d,e),`; None if it is not one."""
    stack: list[Selection] = [{}]
    inner, before = stack[0], ""
    for name, mark in _PART.findall(mask):
        if bool(name) == (before == ")") or (not name and mark not in ",)"):
            return None
        if name:
            inner = inner.setdefault(name, {})
        if mark == "(":
            stack.append(inner)
        elif mark == ")" and len(stack) > 1:
            stack.pop()
        elif mark == ")":
            return None
        if mark in ",)":
            inner = stack[-1]
        before = mark
    return stack[0] if len(stack) == 1 and not _PART.sub("", mask) else None


def _select(value: Any, selection: Selection) -> Any:
    """`value` without what is not selected."""
    if isinstance(value, list):
        return [_select(part, selection) for part in value]
    if not isinstance(value, dict) or not selection:
        return value
    selected = value.keys() if "*" in selection else value.keys() & selection.keys()
    every: Selection = selection.get("*", {})
    return {key: _select(inner, selection.get(key, every)) for key, inner in value.items() if key in selected}
