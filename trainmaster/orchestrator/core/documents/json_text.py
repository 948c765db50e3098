"""JSON as the service stores and publishes it, and JSON from anywhere as plain values.

Whatever is parsed here can be written here, and whatever is written here can be parsed: lone surrogates become U+FFFD,
and numbers that JSON lacks become the words of protobuf's JSON mapping.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

MAX_DEPTH_STORED = 64
"""A record holds a request, which is nested up to 32 levels deep. Code that walks values recurses."""
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_SURROGATE = re.compile("[\ud800-\udfff]")
_MAY_HOLD_SURROGATES = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_WORDS = {math.inf: "Infinity", -math.inf: "-Infinity"}


class TooDeep(ValueError):
    """Lists and mappings are nested too deep; the message says how deep they may be."""


def json_bytes(value: object) -> bytes:
    """The document as it is stored, readable for people. Never fails on what `encoded` or `parse_json` returned."""
    return json_line(value, indent=2).encode() + b"\n"


def json_line(value: object, indent: int | None = None) -> str:
    """The document on one line, as it is published."""
    try:
        text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    except (ValueError, RecursionError):
        text = json.dumps(_mapped(value, _writable), indent=indent, ensure_ascii=False, allow_nan=False)
    return _SURROGATE.sub(REPLACEMENT, text)


def parse_json(content: bytes | str, max_depth: int = MAX_DEPTH_STORED) -> Any:  # Any: JSON
    """The value in a text that anyone may have written.

    Raises:
        TooDeep: it is nested deeper than `max_depth` levels.
        ValueError: it is not JSON.
    """
    too_deep = f"nested deeper than {max_depth} levels"
    if isinstance(content, bytes):
        content = content.decode(json.detect_encoding(content), "surrogatepass")
    try:
        value = json.loads(content)
    except RecursionError as error:
        raise TooDeep(too_deep) from error
    if _is_deeper(value, max_depth):
        raise TooDeep(too_deep)
    return _mapped(value, _well_formed) if _MAY_HOLD_SURROGATES.search(content) else value


def _is_deeper(value: object, most: int) -> bool:
    """Level by level, so that no depth exhausts the stack."""
    level = [value]
    for _ in range(most):
        level = [
            part
            for outer in level
            if isinstance(outer, dict | list)
            for part in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(part, dict | list)
        ]
        if not level:
            return False
    return True


def _mapped(value: object, leaf: Callable[[object], object], depth: int = 0) -> object:
    """The value with `leaf` of every key and every part that holds no other. Deeper than is ever read stands `…`."""
    match value:
        case Mapping() | list() | tuple() if depth >= MAX_DEPTH_STORED:
            return "…"
        case Mapping():
            return {str(leaf(key)): _mapped(part, leaf, depth + 1) for key, part in value.items()}
        case list() | tuple():
            return [_mapped(part, leaf, depth + 1) for part in value]
    return leaf(value)


def _well_formed(leaf: object) -> object:
    return _SURROGATE.sub(REPLACEMENT, leaf) if isinstance(leaf, str) else leaf


def _writable(leaf: object) -> object:
    return _WORDS.get(leaf, "NaN") if isinstance(leaf, float) and not math.isfinite(leaf) else leaf
