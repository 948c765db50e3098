"""JSON as plain values: each key once in its object, finite numbers, no deeper than values may be."""

import json
import math
from collections import Counter
from collections.abc import Iterator

from trainmaster.orchestrator.core.documents.faults import Fault, PathPart
from trainmaster.orchestrator.core.documents.values import (
    KEEP_ONE,
    MAX_DEPTH,
    MAX_DIGITS,
    Document,
    is_too_deep,
    unreadable,
)


def json_document(text: str) -> Document:
    faults: list[Fault] = []

    def unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
        times = Counter(key for key, _ in pairs)
        for key in sorted(key for key, count in times.items() if count > 1):
            # Here only the key is known, not the objects around it.
            faults.append(
                Fault(path="$", problem="a key stands twice in one object", value=key, repair=KEEP_ONE)
            )
        return dict(pairs)

    def refused(constant: str) -> None:
        faults.append(Fault(path="$", problem="no finite number", found=constant, allowed="finite numbers"))

    try:
        value = json.loads(text, object_pairs_hook=unique, parse_constant=refused)
    except RecursionError:
        return unreadable(f"nested deeper than {MAX_DEPTH} levels")
    except ValueError as error:
        return unreadable(f"broken JSON: {error}", repair="check quotes, commas and brackets near that place")
    faults += _too_deep_or_large(value)
    if is_too_deep(value):
        # Whatever walks values does so by recursion, which deep ones would exhaust.
        return Document(value=None, faults=tuple(faults))
    return Document(value=value, faults=tuple(faults))


def _too_deep_or_large(value: object, path: tuple[PathPart, ...] = ()) -> Iterator[Fault]:
    if len(path) > MAX_DEPTH:
        yield Fault(at=path[:4], problem=f"nested deeper than {MAX_DEPTH} levels")
        return
    match value:
        case dict():
            for key, part in value.items():
                yield from _too_deep_or_large(part, (*path, key))
        case list():
            for index, part in enumerate(value):
                yield from _too_deep_or_large(part, (*path, index))
        case float() if not math.isfinite(value):
            yield Fault(at=path, problem="no finite number", allowed="finite numbers")
        case int() if abs(value) >= 10**MAX_DIGITS:
            yield Fault(at=path, problem=f"a number of more than {MAX_DIGITS} digits")
