"""Values of a document as messages quote them: on one line, of bounded length, in the notation of YAML and JSON."""

import re
from collections.abc import Iterable, Iterator, Mapping

FOUND_MAX_CHARS = 200
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_READ_DIFFERENTLY = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
"""Words that YAML 1.1 does not read as strings, or that some of its readers do not."""


def shown(value: object) -> str:
    """The value as a report quotes it: `true`, `null`, `[a, 1]`, `{a: 1}`; text in quotes, control characters escaped.

    Cut to FOUND_MAX_CHARS. The work is bounded too: of a large value only the beginning is read.
    """
    text = ""
    for piece in (_quoted(value),) if isinstance(value, str) else _pieces(value):
        text += piece
        if len(text) > FOUND_MAX_CHARS:
            break
    return cut(text, FOUND_MAX_CHARS)


def plain(text: str) -> str:
    """The text as `shown` writes it, without quotes: always one line."""
    return shown(text)[1:-1]


def quote_it(text: str) -> str:
    """The repair of a value that YAML or JSON reads as no string; `text` is how its author wrote it."""
    is_short = len(text) <= FOUND_MAX_CHARS
    return f'quote it: "{plain(text)}"' if is_short else "quote it"


def cut(text: str, most_chars: int) -> str:
    """The text, or the beginning of a longer one and `…`, which makes `most_chars` in all."""
    return text if len(text) <= most_chars else f"{text[: most_chars - 1]}…"


def _quoted(text: str) -> str:
    return repr(text[: FOUND_MAX_CHARS + 1])


def _pieces(value: object) -> Iterator[str]:
    """The value's text in parts, each of bounded length."""
    match value:
        case None | bool():
            yield _CONSTANTS[value]
        case str():
            is_plain = (
                _WORD.fullmatch(value[: FOUND_MAX_CHARS + 1]) and value.lower() not in _READ_DIFFERENTLY
            )
            yield value[: FOUND_MAX_CHARS + 1] if is_plain else _quoted(value)
        case bytes():
            yield f"bytes {value[:FOUND_MAX_CHARS].hex(' ')}"
        case Mapping():
            yield from _joined(
                "{}", ((f"{''.join(_pieces(str(key)))}: ", part) for key, part in value.items())
            )
        case list() | tuple():
            yield from _joined("[]", (("", part) for part in value))
        case _:
            yield repr(value)


def _joined(brackets: str, parts: Iterable[tuple[str, object]]) -> Iterator[str]:
    yield brackets[0]
    for number, (key, part) in enumerate(parts):
        yield f", {key}" if number else key
        yield from _pieces(part)
    yield brackets[1]


_CONSTANTS = {None: "null", True: "true", False: "false"}
