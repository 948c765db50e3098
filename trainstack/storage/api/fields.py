"""Partial responses: the fields of an answer that a request's `fields` selects.

Source: https://cloud.google.com/storage/docs/json_api#partial-response
"""

import json
import re
from typing import Any

from starlette.responses import JSONResponse, Response

from trainstack.storage.objects.errors import invalid

_MAX_DEPTH = 20
_TOKENS = re.compile(r"[\w*-]+|\S")

Selection = dict[str, Any]
"""The selections inside each selected name; an empty one selects everything. `*` stands for every name."""


def partial(answer: Response, mask: str) -> Response:
    """The answer with the selected fields alone; as it is if it is no resource.

    Raises:
        RefusedError: 400, the mask is not one.
    """
    if answer.status_code != 200 or not (answer.media_type or "").startswith("application/json"):  # noqa: PLR2004  # OK
        return answer
    tokens = [*_TOKENS.findall(mask), ""]
    selection = _read(tokens, _MAX_DEPTH)
    if selection is None or tokens != [""]:
        raise invalid(f"Invalid field selection {mask!r}.")
    return JSONResponse(_select(json.loads(bytes(answer.body)), selection), media_type=answer.media_type)


def _read(tokens: list[str], depth: int, *, is_list: bool = True) -> Selection | None:
    """The selection that the tokens begin with, as in `a/b,c(d,e)`, which it removes; None if they are no mask."""
    selection: Selection = {}
    while depth and re.fullmatch(r"[\w*-]+", name := tokens.pop(0)):
        inner: Selection | None = {}
        if tokens[0] == "/":
            tokens.pop(0)
            inner = _read(tokens, depth - 1, is_list=False)
        elif tokens[0] == "(":
            tokens.pop(0)
            inner = _read(tokens, depth - 1)
            if inner is not None and tokens.pop(0) != ")":
                return None
        if inner is None:
            return None
        selection[name] = selection.get(name, {}) | inner
        if not is_list or tokens[0] != ",":
            return selection
        tokens.pop(0)
    return None


def _select(value: Any, selection: Selection) -> Any:
    """`value` without what is not selected."""
    if isinstance(value, list):
        return [_select(part, selection) for part in value]
    if not isinstance(value, dict) or not selection:
        return value
    selected = value.keys() if "*" in selection else value.keys() & selection.keys()
    every: Selection = selection.get("*", {})
    return {key: _select(inner, selection.get(key, every)) for key, inner in value.items() if key in selected}
