"""The request of a run on its page: its text with the place of each fault, and the canonical form."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import yaml

from trainmaster.client.find import Run
from trainmaster.client.records import read_json
from trainmaster.client.runs.origin import submitted_text, uploaded_text
from trainmaster.client.shown.run_lines import reported_faults
from trainmaster.client.submission.terms import deployed_terms
from trainmaster.client.terminal import visible
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.documents.document import parse_document
from trainmaster.orchestrator.core.documents.faults import Fault, cut
from trainmaster.orchestrator.core.documents.places import split_lines
from trainmaster.orchestrator.core.names import split_object_uri
from trainmaster.orchestrator.core.requests.checks.secrets import secret_lines
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.web.source import AnswerAge
from trainmaster.web.subject import Ask

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients

HIDDEN = "(this line is not shown: it may hold a secret)"
LINES_SHOWN, CHARS_SHOWN = 1000, 64 * 1024
LINE_MAX_CHARS = 1000
FAULTS_SHOWN = 50


RequestView = Mapping[str, Any]  # Any: what the template shows
"""The `lines` of its text, none where that is not kept any more, and how many are `left_out`; the `faults` of a rejected
request, and `faults_left_out`; its `uri`; and the `canonical` request as YAML, empty for a rejected run."""


def request_view(ask: Ask, run: Run) -> RequestView:
    """The request; it never changes, so it is read rarely."""
    return ask.source.read(
        ("request", run.record.run_id), AnswerAge.RARE, lambda clients: _read_view(clients, run.record)
    )


def _read_view(clients: "Clients", record: RunRecord) -> RequestView:
    """The text of an accepted request as the ledger keeps it; of a rejected upload as long as the inbox has that object.

    Lines of a rejected request that may hold a secret are replaced by HIDDEN.

    Raises:
        NotFound: the ledger's document is damaged, or the deployment publishes no policy.
        google.api_core.exceptions.GoogleAPICallError: a bucket cannot be read.
    """
    if record.request is not None:
        uri, text = record.request.original.uri, submitted_text(clients, record)
        lines = [] if text is None else _lines(text, uri)
        return _view(lines, [], uri, canonical=_yaml(record.request.document))
    faults, text = _faults(clients, record), uploaded_text(clients, record.source)
    if text is None:
        return _view([], faults, "")
    uri, policy = record.source.uri or "", deployed_terms(clients).policy
    hidden = secret_lines(
        parse_document(text.encode(), as_json=_is_json(uri)), policy.env.secrets if policy else ()
    )
    hidden |= {fault.place.line for fault in faults if fault.place and fault.place.text is None}
    lines = [HIDDEN if n in hidden else line for n, line in enumerate(_lines(text, uri), 1)]
    return _view(lines, faults, uri)


def _view(lines: Sequence[str], faults: Sequence[Fault], uri: str, canonical: str = "") -> RequestView:
    marked, shown = faults[:FAULTS_SHOWN], _lines_within(lines)
    return {
        "lines": [_marked_line(number, line, marked) for number, line in enumerate(shown, 1)],
        "left_out": len(lines) - len(shown),
        "faults": marked,
        "faults_left_out": len(faults) - len(marked),
        "uri": uri,
        "canonical": canonical,
    }


def _lines(text: str, uri: str) -> Sequence[str]:
    lines = split_lines(text, as_json=_is_json(uri))
    return lines[:-1] if lines and not lines[-1] else lines


def _is_json(uri: str) -> bool:
    return uri.lower().endswith(".json") and "/submitted/" not in uri


def _faults(clients: "Clients", record: RunRecord) -> Sequence[Fault]:
    """Those of the report; if that is gone, the first ones, which the record has."""
    rejection = record.rejection
    if rejection is None:
        return []
    report = read_json(clients.storage, *split_object_uri(rejection.report_uri)) or {}
    return reported_faults(report.get("faults") or rejection.faults or ())


def _lines_within(lines: Sequence[str]) -> Sequence[str]:
    """The first lines that the page has room for."""
    chars = 0
    for number, line in enumerate(lines[:LINES_SHOWN]):
        chars += min(len(line), LINE_MAX_CHARS)
        if chars > CHARS_SHOWN:
            return lines[:number]
    return lines[:LINES_SHOWN]


def _marked_line(number: int, line: str, faults: Sequence[Fault]) -> Mapping[str, Any]:
    """A line, in parts: before, within and after the place of its first fault; without one all of it is `before`."""
    here = [fault for fault in faults if fault.place is not None and fault.place.line == number]
    start = end = len(line)
    if here and here[0].place is not None and here[0].place.text is not None:
        start = here[0].place.column - 1
        end = start + here[0].place.length
    return {
        "number": number,
        "before": _cut(line[:start]),
        "marked": _cut(line[start:end]),
        "after": _cut(line[end:]),
        "faults": [f"{fault.path}: {fault.problem}" for fault in here],
    }


def _cut(text: str) -> str:
    return visible(cut(text, LINE_MAX_CHARS))


def _yaml(document: object) -> str:
    text = yaml.safe_dump(encoded(document), sort_keys=False, allow_unicode=True)
    return visible(text if len(text) <= CHARS_SHOWN else f"{text[:CHARS_SHOWN]}\n…")
