"""Tree to text, such that parsing the text gives the tree again."""

import re
from typing import assert_never

from trainmaster.local.logging.filters.tree import And, Anywhere, Call, Comparison, Node, Not, Or, Value

_PLAIN = re.compile(r"(?!(?:AND|OR|NOT)\Z)[A-Za-z_][A-Za-z0-9_]*\Z")


def show_filter(node: Node) -> str:
    """The filter in one line."""
    match node:
        case And(parts=parts):
            return " AND ".join(_inner(part) for part in parts)
        case Or(parts=parts):
            return " OR ".join(_inner(part) for part in parts)
        case Not(part=part):
            return f"NOT {_inner(part)}"
        case Comparison(path=path, operator=operator, value=value):
            return f"{'.'.join(_segment(one) for one in path)}{operator.value}{_value(value)}"
        case Anywhere(text=text):
            return _quoted(text)
        case Call(name=name, arguments=arguments):
            return f"{name}({', '.join(_value(one) for one in arguments)})"
        case _:
            assert_never(node)


def _inner(node: Node) -> str:
    shown = show_filter(node)
    return f"({shown})" if isinstance(node, And | Or) else shown


def _segment(text: str) -> str:
    return text if _PLAIN.match(text) else _quoted(text)


def _value(value: Value) -> str:
    return _quoted(value.text) if value.quoted else value.text


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
