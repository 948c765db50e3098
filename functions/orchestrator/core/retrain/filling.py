"""The places of a request, `${name}` or `${name:-default}`, and the values that fill them.

A place stands in a string value, never in a key. It is filled after the document was parsed, as text inside
that string, and what it was filled with is never looked at again. `$${` stands for the text `${`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.core.faults import Fault, PathPart, json_path, listed, nearest, shown

VALUE_MAX_CHARS = 2000
_PLACE = re.compile(r"\$(?P<literal>\$\{)|\$\{(?P<inside>[^}]*)(?P<end>\}?)")
_INSIDE = re.compile(r"(?P<name>[a-z_]+\.[a-z_]+)(:-(?P<default>.*))?", re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


@dataclass(frozen=True, kw_only=True)
class Place:
    """One place: the name it asks for, and the text that stands in where there is no value."""

    name: str
    default: str | None = None


@dataclass(frozen=True, kw_only=True)
class Unfilled:
    """Why a firing cannot be filled in, in plain words."""

    reason: str
