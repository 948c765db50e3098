"""What a newer release wrote into a document, and this one does not know, survives this one's next write."""

from typing import Any


# Any: JSON.
def with_unknown(after: Any, before: Any, raw: Any) -> Any:
    """`after`, with what `raw` has and `before` lacks, at every level.

    `raw` is the document as it was read, `before` what this release encodes it as, and `after` its changed version.
    An entry of a list that has not changed keeps what is unknown of it wherever it is now; a changed one is new.
    """
    if raw == before:
        return after
    if isinstance(after, dict) and isinstance(before, dict) and isinstance(raw, dict):
        known = {
            key: with_unknown(part, before[key], raw[key]) if key in before and key in raw else part
            for key, part in after.items()
        }
        unknown = {
            key: part
            for key, part in raw.items()
            if key not in before and key not in after and part is not None
        }
        return {**known, **unknown}
    if isinstance(after, list) and isinstance(before, list) and isinstance(raw, list):
        return _entries(after, before, raw)
    return after


def _entries(after: list[Any], before: list[Any], raw: list[Any]) -> list[Any]:
    extended = [
        (known, part) for known, part in zip(before, raw, strict=False) if isinstance(part, dict | list)
    ]
    extended = [(known, part) for known, part in extended if known != part]
    entries: list[Any] = []
    for entry in after:
        at = next((at for at, (known, _) in enumerate(extended) if known == entry), None)
        entries.append(entry if at is None else with_unknown(entry, *extended.pop(at)))
    return entries
