"""The demands on every answer of a parser, and the record of an input that does not meet them."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import Any

from trainmaster.orchestrator.core.documents.faults import Fault

LINE_BREAKERS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Characters that begin a new line, move a terminal's cursor, or are not valid text."""


class Verdict(StrEnum):
    TAKEN = "taken"
    PASSED_OVER = "passed over"
    REFUSED = "refused"


class Broken(AssertionError):
    """A promise that does not hold for an input."""


@dataclass(frozen=True, kw_only=True)
class Parser:
    """`draw` makes an input, `feed` parses it and holds the answer against its promises."""

    name: str
    draw: Callable[[Random], Any]
    feed: Callable[[Any], Verdict]


def promised(*, holds: bool, promise: str, found: object) -> None:
    if not holds:
        raise Broken(f"{promise}: {found!r}")


def refused_well(faults: Iterable[Fault]) -> Verdict:
    """Every fault says where and what, in text that stays on its line."""
    listed = list(faults)
    promised(holds=bool(listed), promise="a refusal has a reason", found=listed)
    for fault in listed:
        promised(holds=fault.path.startswith("$") and bool(fault.problem), promise="a place", found=fault)
        promised(holds=not LINE_BREAKERS.search(str(fault)), promise="one line of text", found=str(fault))
    return Verdict.REFUSED


def said_well(reason: str) -> None:
    promised(holds=bool(reason.strip()), promise="a reason", found=reason)
    promised(holds=not LINE_BREAKERS.search(reason), promise="a reason in one line", found=reason)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """An input that broke a promise; `number` draws it again from the same seed."""

    parser: str
    number: int
    error: str
    given: str


def random_of(seed: int, parser: Parser, number: int) -> Random:
    """Each input has its own, so that one is drawn again without those before it."""
    return Random(f"{seed}/{parser.name}/{number}")


def fed(parser: Parser, seed: int, number: int) -> Verdict | Finding:
    """The result for one input. Only an exception that the parser does not declare is a finding."""
    given = parser.draw(random_of(seed, parser, number))
    try:
        return parser.feed(given)
    except Exception as error:
        where = _innermost(error)
        return Finding(
            parser=parser.name,
            number=number,
            error=f"{type(error).__name__} at {where}: {str(error)[:300]}",
            given=repr(given)[:600],
        )


def _innermost(error: BaseException) -> str:
    frames, trace = [], error.__traceback__
    while trace is not None:
        frames.append(f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}")
        trace = trace.tb_next
    ours = [frame for frame in frames if not frame.startswith(("parsers.py", "verdicts.py"))]
    return (ours or frames)[-1]
