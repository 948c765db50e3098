"""Documents that a JSON Schema allows, as a Hypothesis strategy, and documents without what was refused."""

import copy
import re
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from trainmaster.orchestrator.core.documents.faults import Fault, PathPart

_PART = re.compile(
    r"\.(?P<word>\w+)|\[(?P<index>[0-9]+)\]|\[(?P<quote>'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")\]"
)
_NEEDS = re.compile(r"missing: (?P<key>\w+) needs it")
Hints = Mapping[str, st.SearchStrategy[Any]]

INTEGERS: st.SearchStrategy[Any] = st.integers()
_PLACEHOLDER = r"\$\{(project|region|inbox_bucket|models_bucket)\}"


def documents(schema: Mapping[str, Any], hints: Hints) -> st.SearchStrategy[dict[str, Any]]:
    """Documents of the schema. `hints` are values for properties and `$defs` of these names, drawn instead."""
    return _values(schema, schema, hints)


def _values(schema: Mapping[str, Any], root: Mapping[str, Any], hints: Hints) -> st.SearchStrategy[Any]:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        target = root["$defs"][name]
        return hints[name] if name in hints else st.deferred(lambda: _values(target, root, hints))
    if "const" in schema or "enum" in schema:
        return st.sampled_from(schema.get("enum") or [schema["const"]])
    kind = schema.get("type")
    if kind == "object":
        return _objects(schema, root, hints)
    if kind == "array":
        items = _values(schema["items"], root, hints) if "items" in schema else _scalars()
        return st.lists(items, min_size=schema.get("minItems", 0), max_size=min(schema.get("maxItems", 3), 3))
    return _plain(schema, str(kind))


def _plain(schema: Mapping[str, Any], kind: str) -> st.SearchStrategy[Any]:
    low, high = schema.get("minimum"), schema.get("maximum")
    match kind:
        case "string":
            return _texts(schema)
        case "integer":
            return st.integers(-(2**62) if low is None else low, 2**62 if high is None else high)
        case "number":
            return st.floats(low, high, allow_nan=False, allow_infinity=False)
        case "boolean":
            return st.booleans()
        case _:
            return _scalars()


def _objects(schema: Mapping[str, Any], root: Mapping[str, Any], hints: Hints) -> st.SearchStrategy[Any]:
    properties = schema.get("properties")
    if properties is None:
        keys = _texts(schema["propertyNames"])
        inner = _values(schema["additionalProperties"], root, hints)
        return st.dictionaries(keys, inner, min_size=schema.get("minProperties", 0), max_size=3)
    drawn = {
        name: hints[name] if name in hints else _values(inner, root, hints)
        for name, inner in properties.items()
    }
    required = schema.get("required", ())
    return st.fixed_dictionaries(
        {name: drawn[name] for name in required},
        optional={name: value for name, value in drawn.items() if name not in required},
    )


def _texts(schema: Mapping[str, Any]) -> st.SearchStrategy[str]:
    if "pattern" in schema:
        # Without the placeholders of a deployment: they are filled before a schema sees the request.
        pattern = schema["pattern"].replace(f"|[a-z0-9._-]*{_PLACEHOLDER}[a-z0-9._-]*", "")
        return st.from_regex(pattern.replace(f"|{_PLACEHOLDER}", "").removesuffix("$") + r"\Z")
    return st.text(min_size=schema.get("minLength", 0), max_size=20)


def _scalars() -> st.SearchStrategy[Any]:
    return (
        st.integers(-(2**62), 2**62) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
    )


def json_values(
    texts: st.SearchStrategy[str], numbers: st.SearchStrategy[Any] = INTEGERS
) -> st.SearchStrategy[Any]:
    """Small JSON values, of these texts and numbers."""
    return st.recursive(
        st.none() | st.booleans() | numbers | texts,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
        max_leaves=12,
    )


def without(document: Mapping[str, Any], faults: Sequence[Fault]) -> dict[str, Any]:
    """The document without what the faults name; where something is missing, without what misses it."""
    left = copy.deepcopy(dict(document))
    # The last entries of a list go first, so that the places of the others stay.
    for path in sorted({_place(fault) for fault in faults}, key=str, reverse=True):
        _remove(left, path)
    return left


def _place(fault: Fault) -> tuple[PathPart, ...]:
    path, asker = _parts(fault.path), _NEEDS.fullmatch(fault.problem)
    return (*path[:-1], asker["key"]) if asker else path


def _remove(document: Any, path: tuple[PathPart, ...]) -> None:
    while path:
        *above, last = path
        place = document
        try:
            for part in above:
                place = place[part]
            del place[last]
        except (KeyError, IndexError, TypeError):
            path = tuple(above)
        else:
            return


def _parts(path: str) -> tuple[PathPart, ...]:
    parts: list[PathPart] = []
    for found in _PART.finditer(path.removeprefix("$")):
        if found["word"] is not None:
            parts.append(found["word"])
        elif found["index"] is not None:
            parts.append(int(found["index"]))
        else:
            parts.append(found["quote"][1:-1].encode().decode("unicode_escape", "replace"))
    return tuple(parts)
