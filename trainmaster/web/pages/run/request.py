"""The request of a run on its page: its text with the place of each fault, and the canonical form."""

from collections.abc import Sequence
from dataclasses import dataclass

import yaml

from trainmaster.client.find import Run
from trainmaster.client.terminal import visible
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.documents.faults import Fault, cut
from trainmaster.web.pages.run.request_text import RequestText, read_request_text
from trainmaster.web.source import AnswerAge
from trainmaster.web.subject import Ask

LINES_SHOWN, CHARS_SHOWN = 1000, 64 * 1024
LINE_MAX_CHARS = 1000
FAULTS_SHOWN = 50


@dataclass(frozen=True, kw_only=True)
class MarkedLine:
    """A line, in parts: before, within and after the place of its first fault; without one all of it is `before`."""

    number: int
    before: str
    marked: str = ""
    after: str = ""
    faults: tuple[str, ...] = ()
    """What is wrong there."""


@dataclass(frozen=True, kw_only=True)
class RequestView:
    """What the page shows of the request.

    Attributes:
        lines: of its text; empty where that is not kept any more.
        left_out: further lines.
        faults: those of a rejected request.
        faults_left_out: further faults.
        canonical: the canonical request as YAML; empty for a rejected run.
    """

    lines: Sequence[MarkedLine]
    left_out: int
    faults: Sequence[Fault]
    faults_left_out: int
    uri: str
    canonical: str


def request_view(ask: Ask, run: Run) -> RequestView:
    """The request; it never changes, so it is read rarely."""
    return ask.source.read(
        ("request", run.record.run_id),
        AnswerAge.RARE,
        lambda clients: _view(read_request_text(clients, run), run),
    )


def _view(text: RequestText, run: Run) -> RequestView:
    faults = text.faults[:FAULTS_SHOWN]
    shown = _lines_within(text.lines or ())
    request = run.record.request
    canonical = "" if request is None else _yaml(request.document)
    return RequestView(
        lines=[_marked_line(number, line, faults) for number, line in enumerate(shown, 1)],
        left_out=len(text.lines or ()) - len(shown),
        faults=faults,
        faults_left_out=len(text.faults) - len(faults),
        uri=text.uri,
        canonical=canonical,
    )


def _lines_within(lines: Sequence[str]) -> Sequence[str]:
    """The first lines that the page has room for."""
    chars = 0
    for number, line in enumerate(lines[:LINES_SHOWN]):
        chars += min(len(line), LINE_MAX_CHARS)
        if chars > CHARS_SHOWN:
            return lines[:number]
    return lines[:LINES_SHOWN]


def _marked_line(number: int, line: str, faults: Sequence[Fault]) -> MarkedLine:
    here = [fault for fault in faults if fault.place is not None and fault.place.line == number]
    texts = tuple(f"{fault.path}: {fault.problem}" for fault in here)
    if not here or here[0].place is None or here[0].place.text is None:
        return MarkedLine(number=number, before=_cut(line), faults=texts)
    start = here[0].place.column - 1
    end = start + here[0].place.length
    return MarkedLine(
        number=number,
        before=_cut(line[:start]),
        marked=_cut(line[start:end]),
        after=_cut(line[end:]),
        faults=texts,
    )


def _cut(text: str) -> str:
    return visible(cut(text, LINE_MAX_CHARS))


def _yaml(document: object) -> str:
    text = yaml.safe_dump(encoded(document), sort_keys=False, allow_unicode=True)
    return visible(text if len(text) <= CHARS_SHOWN else f"{text[:CHARS_SHOWN]}\n…")
