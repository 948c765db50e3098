"""Inputs that are nearly right, and inputs that are not: the same ones for the same seed.

Values are changed before they are written, so that most inputs get past the first check; bytes after.
"""

import copy
import json
import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import yaml

Place = tuple[Any, ...]
MOST_CHANGES = 4
TEXTS = (
    "", " ", "0", "-1", "true", "no", "~", "null", "1e999", "0x10", "1:30", "12_000", "2026-01-01", "NaN",
    "..", "../../etc/passwd", "a/../b", "/", "//", ".", "gs://", "gs://b", "gs://models/../ledger",
    "gs://\n/x", "$(rm -rf /)", "`id`", "; id", "| id", "%s%n", "{0.__class__}", "${project}", "${",
    "$${x}", "${rule.id:-}", "\x00", "\x1b[31mred", "\r\nseverity: ERROR", '"}\n{"severity": "EMERGENCY"',
    "\u2028\u2029", "\x85", "\x7f", "\u202e\u2066lamron", "\u0430dmin", "\u212a", "\u0130", "\uff11\uff12",
    "\u0661", "e\u0301", "\U0001f4a9", "\ud800", "\udfff\ud800", "\ufeff", "\ufffe", "x" * 64, "x" * 1025,
    "\u00fc" * 600, "a" * 20_000, "requests/a.yaml", "rules/b.json", "sha256:" + "0" * 64,
    "projects/p/locations/l/customJobs/1", "__proto__",
)  # fmt: skip
DEPTHS = (28, 29, 33, 200, 331, 471, 480, 900, 971, 985, 5001)
_DEEP_MARK = re.compile(r'"?deep-([0-9]+)"?')
"""Nesting as deep as this is only written, never built: Python walks values by recursion."""
NUMBERS = (0, -1, 1, 2**31, 2**63, 10**25, 10**400, 0.1, -0.0, 1e308, 5e-324, float("inf"), float("nan"))
TOKENS = (
    b"\x00", b"\xff", b"\xfe\xff", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xc0\x80", b"\t", b"\r", b"\x1b[2J",
    b"\n", b"[" * 2000, b'{"a":' * 2000, b"- " * 2000, b"? " * 500, b"&a ", b"*a", b"<<: ", b"---\n",
    b"...\n", b"%", b"!!python/object/apply:os.system [id]", b"!!binary x", b"!!set {a}", b"!!float x",
    b"!!int x", b"!!bool x", b'"\\UFFFFFFFF"', b'"\\ud800"', b'"\\x0"',
    b"%YAML " + b"9" * 5000 + b".1\n---\n", b"%TAG ! %ff\n", b"!<%ff>", b"9" * 5000, b"1e99999",
    b"-Infinity", b"0o7", b"| \n", b">9\n", b"@", b"`", b"#", b"'", b'"', b": ", b",", b"}", b"=", b"!",
    b"!!", b"!!null x", b"!!timestamp x", b"!!merge x", b"!!omap [a]", b"\xe2\x80\xa8", b"\xc2\x85",
)  # fmt: skip


def text(random: Random) -> str:
    """One of the texts, or a few characters from anywhere in Unicode, halves of surrogate pairs too."""
    if random.random() < 0.7:
        return random.choice(TEXTS)
    return "".join(chr(random.choice((random.randrange(128), random.randrange(0x110000)))) for _ in range(6))


def value(random: Random, depth: int = 0) -> Any:
    """Any JSON value, small; a text `deep-N` stands for N levels of nesting."""
    kind = random.randrange(12 if depth < 3 else 6)
    if kind < 3:
        return text(random)
    if kind < 5:
        return random.choice(NUMBERS)
    if kind == 5:
        return random.choice((None, True, False))
    if kind < 8:
        return [value(random, depth + 1) for _ in range(random.randrange(4))]
    if kind < 11:
        return {text(random): value(random, depth + 1) for _ in range(random.randrange(4))}
    return f"deep-{random.choice(DEPTHS)}"


def places(document: Any, path: Place = ()) -> list[Place]:
    """The path of every value in the document, its own first."""
    inside: Any = ()
    if isinstance(document, dict):
        inside = document.items()
    elif isinstance(document, list):
        inside = enumerate(document)
    return [path, *(found for key, part in inside for found in places(part, (*path, key)))]


def changed(document: Any, random: Random, vocabulary: Sequence[str]) -> Any:
    """The document with one to four values or keys replaced, removed, doubled or moved; the document is kept."""
    whole = copy.deepcopy(document)
    for _ in range(random.choice((1, 1, 1, 2, MOST_CHANGES))):
        whole = _once(whole, random, vocabulary)
    return whole


def _once(whole: Any, random: Random, vocabulary: Sequence[str]) -> Any:
    found = places(whole)
    if len(found) == 1 or random.random() < 0.01:
        return value(random)
    path = random.choice(found[1:])
    holder, last = whole, path[-1]
    for key in path[:-1]:
        holder = holder[key]
    random.choice(_CHANGES)(holder, last, random, vocabulary)
    return whole


def _replace(holder: Any, last: Any, random: Random, vocabulary: Sequence[str]) -> None:
    holder[last] = value(random)


def _reword(holder: Any, last: Any, random: Random, vocabulary: Sequence[str]) -> None:
    holder[last] = random.choice((text(random), random.choice(vocabulary), f"{holder[last]}{text(random)}"))


def _remove(holder: Any, last: Any, random: Random, vocabulary: Sequence[str]) -> None:
    del holder[last]


def _rename(holder: Any, last: Any, random: Random, vocabulary: Sequence[str]) -> None:
    if isinstance(holder, dict):
        holder[random.choice((text(random), random.choice(vocabulary)))] = holder.pop(last)


def _wrap(holder: Any, last: Any, random: Random, vocabulary: Sequence[str]) -> None:
    holder[last] = random.choice(([holder[last]], {random.choice(vocabulary): holder[last]}))


def _double(holder: Any, last: Any, random: Random, vocabulary: Sequence[str]) -> None:
    if isinstance(holder, list):
        holder.extend(copy.deepcopy(holder[last]) for _ in range(random.choice((1, 3, 70))))
    else:
        holder[random.choice(vocabulary)] = copy.deepcopy(holder[last])


_CHANGES: tuple[Callable[[Any, Any, Random, Sequence[str]], None], ...] = (
    _replace,
    _reword,
    _remove,
    _rename,
    _wrap,
    _double,
)


def written(document: Any, random: Random, *, as_json: bool) -> bytes:
    """The document as JSON, which YAML takes too, or as YAML; surrogates as the bytes that UTF-8 forbids."""
    if as_json or random.random() < 0.7:  # YAML is slow to write and to read
        line = json.dumps(document, ensure_ascii=random.random() < 0.5)
    else:
        line = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    return _DEEP_MARK.sub(_deep, line).encode("utf-8", "surrogatepass")


def _deep(mark: re.Match[str]) -> str:
    levels = int(mark[1])
    return "[" * levels + "]" * levels if levels % 2 else '{"a":' * levels + "1" + "}" * levels


def spoiled(content: bytes, random: Random) -> bytes:
    """The bytes with a few places written over, cut out, doubled or filled with what parsers stumble over."""
    for _ in range(random.choice((1, 1, 1, 2, MOST_CHANGES))):
        start = random.randrange(len(content) + 1)
        end = min(len(content), start + random.choice((0, 0, 1, 1, 4, 40)))
        new = random.choice(
            (b"", random.choice(TOKENS), random.choice(TOKENS), random.randbytes(3), content[start:end] * 2)
        )
        content = content[:start] + new + content[end:]
    return content


def content_like(document: Any, random: Random, vocabulary: Sequence[str], *, as_json: bool) -> bytes:
    """Bytes to parse: mostly the document changed, sometimes spoiled as well, rarely just bytes."""
    kind = random.random()
    if kind < 0.03:
        return random.randbytes(random.randrange(200))
    whole = document if kind < 0.2 else changed(document, random, vocabulary)
    content = written(whole, random, as_json=as_json)
    return spoiled(content, random) if kind < 0.5 else content
