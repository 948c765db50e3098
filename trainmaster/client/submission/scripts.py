"""The script of this machine that a file names: why it cannot be sent, and a rule's file with its archive."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from trainmaster.client.checking import (
    Checked,
    has_local_script,
    too_large_file,
    with_places_of,
    with_rule_archive,
)
from trainmaster.client.errors import Refused
from trainmaster.client.request_files import is_json_file
from trainmaster.client.submission.pack import Packed, pack_script
from trainmaster.client.submission.syntax import syntax_problem
from trainmaster.orchestrator.core.documents.document import parse_document
from trainmaster.orchestrator.core.documents.faults import Fault
from trainmaster.orchestrator.core.documents.values import Path as At
from trainmaster.orchestrator.core.documents.values import mapping_at, text_at
from trainmaster.orchestrator.core.names import object_uri, script_object
from trainmaster.orchestrator.core.requests.draft import SCRIPT
from trainmaster.orchestrator.core.requests.request import RequestRules

if TYPE_CHECKING:
    from trainmaster.client.context import Context

NO_HASH = "0" * 64
"""In the name of an archive that cannot be packed, so that all else in the rule is checked."""


def unpacked_fault(refused: Refused, above: At = ()) -> Fault:
    """The fault of a request's `script: {file: …}` that was refused; the request is at `above` in its file."""
    return Fault(at=(*above, SCRIPT, "file"), problem=str(refused))


def with_script_faults(
    checked: Checked, content: bytes, root: Path, rules: RequestRules, *, include: Sequence[str] = ()
) -> Checked:
    """The result with the fault of the script that the request or rule names: it is missing, too large, or not Python.

    Its path begins at `root`. Reads the script's folder; uploads nothing. `include` is `pack_script`'s.
    """
    if too_large_file(content) is not None:
        return checked
    document = parse_document(content, as_json=is_json_file(checked.file, content)).value
    if not isinstance(document, dict):
        return checked
    known = {fault.path for fault in checked.faults}
    found = tuple(fault for fault in _faults(document, root, include) if fault.path not in known)
    faults = with_places_of(found, checked.file, content, rules) if found else ()
    return replace(checked, faults=(*checked.faults, *faults))


def _faults(document: Mapping[str, object], root: Path, include: Sequence[str]) -> Iterator[Fault]:
    for above, request in (((), document), (("request",), mapping_at(document, "request"))):
        file = text_at(request, SCRIPT, "file")
        if file is None or not has_local_script(request):
            continue
        try:
            packed = pack_script(root / file, root, include=include)
        except Refused as refused:
            yield unpacked_fault(refused, above)
            continue
        # In an image of the request's own, Python may be newer.
        if request.get("image") is None and (problem := syntax_problem(packed.script)):
            first, *_ = problem.splitlines()
            yield Fault(at=(*above, SCRIPT, "file"), problem=f"Python cannot compile the script: {first}")


@dataclass(frozen=True, kw_only=True)
class ReadyRule:
    """The content to drop, and the script's archive, which is sent first; None if its request names none to send.

    Attributes:
        unpacked: why its script cannot be packed; `content` then has a sample archive, so that all else can be checked.
        not_python: why the script cannot be compiled, in lines for people.
    """

    content: bytes
    packed: Packed | None = None
    unpacked: tuple[Fault, ...] = ()
    not_python: str | None = None


def with_script(
    file: Path, content: bytes, context: "Context", team: str | None, *, include: Sequence[str] = ()
) -> ReadyRule:
    """The rule's file with the archive of its request's `script: {file: …}`, a path from the folder of the rule's file.

    A script runs as it is now at every firing, until the rule is applied again. `include` is `pack_script`'s.
    """
    read = parse_document(content, as_json=is_json_file(str(file), content))
    request = read.value.get("request") if isinstance(read.value, dict) else None
    if read.faults or not isinstance(request, dict) or not has_local_script(request):
        return ReadyRule(content=content)
    try:
        packed = pack_script(file.parent / request["script"]["file"], file.parent, include=include)
    except Refused as refused:
        sample = object_uri(context.data_bucket, script_object(NO_HASH, team))
        ready = with_rule_archive(str(file), content, sample)
        return ReadyRule(content=ready, unpacked=(unpacked_fault(refused, ("request",)),))
    not_python = syntax_problem(packed.script) if request.get("image") is None else None
    archive = object_uri(context.data_bucket, script_object(packed.sha256, team))
    ready = with_rule_archive(str(file), content, archive)
    return ReadyRule(content=ready, packed=packed, not_python=not_python)


def data_note(file: Path, content: bytes) -> str | None:
    """A note about a rule that waits for new data and does not pass their names to its runs; None for any other rule."""
    rule = parse_document(content, as_json=is_json_file(str(file), content)).value
    request, when = (rule.get("request"), rule.get("when")) if isinstance(rule, dict) else (None, None)
    if not isinstance(request, dict) or not isinstance(when, list):
        return None
    if not any(isinstance(each, dict) and "new_data" in each for each in when) or "${data." in str(request):
        return None
    return (
        f"{file} waits for new data, but its request uses no placeholder such as ${{data.newest_dir_uri}}: "
        "its runs do not learn what is new. A program that reads all data needs none."
    )
