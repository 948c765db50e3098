"""Why a script of this machine cannot be sent, as a fault of the file that names it."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from trainmaster.client.checking import Checked, has_local_script, too_large_file, with_places_of
from trainmaster.client.errors import Refused
from trainmaster.client.request_files import is_json_file
from trainmaster.client.submission.pack import pack_script
from trainmaster.client.submission.syntax import syntax_problem
from trainmaster.orchestrator.core.documents.document import parse_document
from trainmaster.orchestrator.core.documents.faults import Fault
from trainmaster.orchestrator.core.documents.unvalidated import Path as At
from trainmaster.orchestrator.core.documents.unvalidated import mapping_at, text_at
from trainmaster.orchestrator.core.requests.draft import SCRIPT
from trainmaster.orchestrator.core.requests.request import RequestRules


def unpacked_fault(refused: Refused, above: At = ()) -> Fault:
    """The fault of a request's `script: {file: …}` that was refused; the request is at `above` in its file."""
    return Fault(at=(*above, SCRIPT, "file"), problem=str(refused))


def with_script_faults(checked: Checked, content: bytes, root: Path, rules: RequestRules) -> Checked:
    """The result with the fault of the script that the request or rule names: it is missing, too large, or not Python.

    Its path begins at `root`. Reads the script's folder; uploads nothing.
    """
    if too_large_file(content) is not None:
        return checked
    document = parse_document(content, as_json=is_json_file(checked.file, content)).value
    if not isinstance(document, dict):
        return checked
    known = {fault.path for fault in checked.faults}
    found = tuple(fault for fault in _faults(document, root) if fault.path not in known)
    faults = with_places_of(found, checked.file, content, rules) if found else ()
    return replace(checked, faults=(*checked.faults, *faults))


def _faults(document: Mapping[str, object], root: Path) -> Iterator[Fault]:
    for above, request in (((), document), (("request",), mapping_at(document, "request"))):
        file = text_at(request, SCRIPT, "file")
        if file is None or not has_local_script(request):
            continue
        try:
            packed = pack_script(root / file, root)
        except Refused as refused:
            yield unpacked_fault(refused, above)
            continue
        # In an image of the request's own, Python may be newer.
        if request.get("image") is None and (problem := syntax_problem(packed.script)):
            first, *_ = problem.splitlines()
            yield Fault(at=(*above, SCRIPT, "file"), problem=f"Python cannot compile the script: {first}")
