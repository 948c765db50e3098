"""Tree to predicate: everything that can be worked out once is, since each log line meets each sink."""

from collections.abc import Callable, Mapping
from typing import TypeAlias, assert_never

from trainmaster.local.logging.filters.compare import fold, test_for, texts
from trainmaster.local.logging.filters.fields import DEFAULTS, getter, resolve
from trainmaster.local.logging.filters.tree import (
    And,
    Anywhere,
    Comparison,
    FilterError,
    Node,
    Not,
    Operator,
    Or,
)

Predicate: TypeAlias = Callable[[Mapping[str, object]], bool]
"""Whether an entry, in its JSON form, passes."""


def compile_filter(node: Node) -> Predicate:
    """The predicate of a tree.

    Raises:
        FilterError: an unknown field, a value that the field cannot be compared with.
    """
    try:
        return _compiled(node)
    except RecursionError as fault:
        raise FilterError("it is nested too deeply") from fault


def _compiled(node: Node) -> Predicate:
    match node:
        case And(parts=parts):
            every = [_compiled(part) for part in parts]
            return lambda entry: all(one(entry) for one in every)
        case Or(parts=parts):
            some = [_compiled(part) for part in parts]
            return lambda entry: any(one(entry) for one in some)
        case Not(part=part):
            inner = _compiled(part)
            return lambda entry: not inner(entry)
        case Comparison():
            return _comparison(node)
        case Anywhere(text=text):
            wanted = fold(text)
            return lambda entry: any(wanted in fold(found) for found in texts(entry))
        case _:
            assert_never(node)


def _comparison(node: Comparison) -> Predicate:
    path, kind = resolve(node.path)
    get = getter(path)
    if node.operator is Operator.HAS and node.value.text == "*" and not node.value.quoted:
        return lambda entry: bool(get(entry))
    test = test_for(node, kind)
    # A field of every entry counts as its default where it is absent; a payload key or label is simply missing,
    # and then every comparison fails, != too.
    default = DEFAULTS.get(kind)
    absent = default is not None and test(default)

    def passes(entry: Mapping[str, object]) -> bool:
        found = get(entry)
        return any(map(test, found)) if found else absent

    return passes
