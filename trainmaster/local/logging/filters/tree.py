"""The tree of a filter. Lists of values are already spelled out: `f=("a" OR "b")` is `f="a" OR f="b"`."""

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias


class Operator(Enum):
    EQUALS = "="
    DIFFERS = "!="
    LESS = "<"
    AT_MOST = "<="
    MORE = ">"
    AT_LEAST = ">="
    HAS = ":"
    MATCHES = "=~"
    MATCHES_NOT = "!~"


@dataclass(frozen=True, kw_only=True)
class Value:
    """The right side of a comparison: `quoted` tells `"*"` from `*`, and a string from a number."""

    text: str
    quoted: bool


@dataclass(frozen=True, kw_only=True)
class Comparison:
    path: tuple[str, ...]
    operator: Operator
    value: Value


@dataclass(frozen=True, kw_only=True)
class Anywhere:
    """A text without a field: it may stand in any of them."""

    text: str


@dataclass(frozen=True, kw_only=True)
class Call:
    name: str
    arguments: tuple[Value, ...]


@dataclass(frozen=True, kw_only=True)
class Not:
    part: "Node"


@dataclass(frozen=True, kw_only=True)
class And:
    """All parts; without any, true: the empty filter."""

    parts: tuple["Node", ...]


@dataclass(frozen=True, kw_only=True)
class Or:
    parts: tuple["Node", ...]


Node: TypeAlias = Comparison | Anywhere | Call | Not | And | Or
EVERYTHING = And(parts=())
