r"""git's wildcards as regular expressions of RE2's over bytes.

`*` and `?` match no '/', `**` between two of them does, `[a-c]`, `[!a-c]`, `[[:alpha:]]`, and `\` before what stands for
itself. Source: git's wildmatch.c of version 2.39, read 2026-11.
"""

import re
import string
from collections.abc import Collection, Mapping

_BEFORE_WILDCARDS = re.compile(rb"[^*?\[\\]*")
_SLASH = ord("/")
_CLASSES: Mapping[bytes, bytes] = {
    b"alnum": (string.ascii_letters + string.digits).encode(),
    b"alpha": string.ascii_letters.encode(),
    b"blank": b" \t",
    b"cntrl": bytes((*range(0x20), 0x7F)),
    b"digit": string.digits.encode(),
    b"graph": bytes(range(0x21, 0x7F)),
    b"lower": string.ascii_lowercase.encode(),
    b"print": bytes(range(0x20, 0x7F)),
    b"punct": string.punctuation.encode(),
    b"space": b" \t\n\r",
    b"upper": string.ascii_uppercase.encode(),
    b"xdigit": string.hexdigits.encode(),
}


class _MatchesNothingError(ValueError):
    r"""A pattern that git takes, and that matches nothing: `a\`, `[a`."""


def has_wildcard(text: bytes) -> bool:
    """Whether it is more than a text to compare with, a backslash included."""
    return b"*" in text or b"?" in text or b"[" in text or b"\\" in text


def re2_expression(text: bytes, *, is_path: bool) -> bytes | None:
    """The pattern for RE2, without '/' at its end, of a path or a name alone; None for one that matches nothing."""
    # git compares the text before the first wildcard by itself, and takes what follows as if it began there.
    before = _BEFORE_WILDCARDS.match(text)
    start = at = before.end() if before else 0
    found = [re.escape(text[:start])]
    try:
        while at < len(text):
            piece, at = _piece(text, at, start, is_path=is_path)
            found.append(piece)
    except _MatchesNothingError:
        return None
    return b"".join(found)


def _piece(text: bytes, at: int, start: int, *, is_path: bool) -> tuple[bytes, int]:
    """The wildcard or character at a place, and where the rest begins."""
    match text[at : at + 1]:
        case b"*":
            return _stars(text, at, start, is_path=is_path)
        case b"?":
            return b"[^/]", at + 1
        case b"[":
            return _class(text, at + 1)
        case _:
            char, at = _char(text, at)
            return re.escape(bytes((char,))), at


def _stars(text: bytes, at: int, start: int, *, is_path: bool) -> tuple[bytes, int]:
    end = at
    while text[end : end + 1] == b"*":
        end += 1
    is_whole = is_path and end > at + 1 and (at == start or text[at - 1] == _SLASH)
    if is_whole and text[end : end + 1] == b"/":
        return b"(?:.*/)?", end + 1
    passes = is_whole and (end == len(text) or text[end : end + 2] == b"\\/")
    return b".*" if passes else b"[^/]*", end


def _char(text: bytes, at: int) -> tuple[int, int]:
    """The character at a place, or after a backslash there, and where the rest begins."""
    at += text[at : at + 1] == b"\\"
    if at >= len(text):
        raise _MatchesNothingError
    return text[at], at + 1


def _class(text: bytes, at: int) -> tuple[bytes, int]:
    """The class that begins before `at`, and where the rest begins. It never matches '/'."""
    is_negated = text[at : at + 1] in (b"!", b"^")
    at += is_negated
    members, first, low = set[int](), at, -1
    while text[at : at + 1] != b"]" or at == first:
        if name := _class_name(text, at):
            if name not in _CLASSES:
                raise _MatchesNothingError
            members.update(_CLASSES[name])
            low, at = -1, at + len(b"[::]") + len(name)
        elif low >= 0 and text[at : at + 1] == b"-" and text[at + 1 : at + 2] not in (b"", b"]"):
            high, at = _char(text, at + 1)
            members.update(range(low, high + 1))
            low = -1
        else:
            low, at = _char(text, at)
            members.add(low)
    if is_negated:
        return b"[^%s]" % _ranges(members | {_SLASH}), at + 1
    if members <= {_SLASH}:
        raise _MatchesNothingError
    return b"[%s]" % _ranges(members - {_SLASH}), at + 1


def _class_name(text: bytes, at: int) -> bytes:
    """The name in `[:name:]` at a place; empty for anything else."""
    if text[at : at + 2] != b"[:":
        return b""
    end = text.find(b"]", at + 2)
    if end < 0 or text[at : end + 1] == b"[::]":
        raise _MatchesNothingError
    return text[at + 2 : end - 1] if text[end - 1 : end] == b":" else b""


def _ranges(members: Collection[int]) -> bytes:
    """These bytes as ranges, to be put in brackets."""
    found: list[list[int]] = []
    for member in sorted(members):
        if found and found[-1][1] == member - 1:
            found[-1][1] = member
        else:
            found.append([member, member])
    return b"".join(b"\\x%02x-\\x%02x" % (low, high) for low, high in found)
