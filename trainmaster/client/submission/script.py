"""The script of this machine that a request or a rule names: packed, and named in the document by its archive."""

import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trainmaster.client.errors import ClientRefused
from trainmaster.client.submission.edits import Edits
from trainmaster.client.submission.pack import Packed, pack_script
from trainmaster.client.submission.source import RequestSource
from trainmaster.client.submission.terms import Terms
from trainmaster.client.terminal import one_line
from trainmaster.orchestrator.core.documents.document import Document
from trainmaster.orchestrator.core.documents.faults import Fault, PathPart, Suggestions
from trainmaster.orchestrator.core.documents.places import TextPlace, with_quoted_line
from trainmaster.orchestrator.core.documents.placing import faults_with_places
from trainmaster.orchestrator.core.documents.values import at, text_at
from trainmaster.orchestrator.core.names import object_uri, script_object
from trainmaster.orchestrator.core.requests.checks.secrets import secret_lines
from trainmaster.orchestrator.core.requests.draft import SCRIPT

NO_HASH = "0" * 64
"""In the name of an archive that is not packed, so that all else in the document is checked."""
_PYTHON = f"Python {sys.version_info[0]}.{sys.version_info[1]}"


@dataclass(frozen=True, kw_only=True)
class ScriptedRequest:
    """A request whose script is on a machine, with the archive that `request` names.

    Attributes:
        packed: the archive; None if the script cannot be packed, or is on another machine. The name is then a sample.
        faults: why the script cannot be sent, without their places in the request.
        warning: why this Python cannot compile it, in an image of the request's own, whose Python may be newer.
    """

    request: dict[str, Any]  # Any: values that no schema has validated
    packed: Packed | None = None
    faults: tuple[Fault, ...] = ()
    warning: Fault | None = None


def _is_local(request: Mapping[str, object], key: str) -> bool:
    return text_at(request, key, "file") is not None and at(request, key, "archive") is None


def with_archive(
    request: Mapping[str, Any],
    source: RequestSource,
    terms: Terms,
    edits: Edits,
    above: Sequence[PathPart] = (),
) -> ScriptedRequest | None:
    """The request with the name of its script's archive; None if its script is not one of a machine.

    Reads the script's folder, which is the source's, or that of `edits.script`; uploads nothing.

    Args:
        request: in our own dialect, with its edits.
        source: it comes from.
        terms: name the bucket of the archive.
        edits: `script` and `include`.
        above: the path of the request in its document.

    Raises:
        ClientRefused: the script of `edits` cannot be packed. That one of the request's own cannot be is a fault.
    """
    # A misspelt key has its own fault.
    near = (key for key in request if isinstance(key, str) and Suggestions().find(key, (SCRIPT,)))
    key = SCRIPT if SCRIPT in request else next(near, SCRIPT)
    if not _is_local(request, key):
        return None
    packed, faults, warning = None, list[Fault](), None
    if key == SCRIPT and source.folder is not None:
        try:
            packed = _pack_named_script(request[SCRIPT]["file"], source.folder, edits)
        except ClientRefused as refused:
            if edits.script is not None:
                raise
            faults.append(Fault(at=(*above, SCRIPT, "file"), problem=str(refused)))
    if packed is not None and (problem := _syntax_fault(packed.script, (*above, SCRIPT, "file"))):
        # The trainer's image has the oldest Python that this package runs on: what does not compile here does not there.
        if request.get("image") is None:
            faults.append(problem)
        else:
            warning = replace(problem, repair="it is sent all the same: the image may have a newer Python")
    name = script_object(NO_HASH if packed is None else packed.sha256, terms.team)
    script = {**request[key], "archive": object_uri(terms.context.data_bucket, name)}
    return ScriptedRequest(
        request={**request, key: script}, packed=packed, faults=tuple(faults), warning=warning
    )


def _pack_named_script(file: str, folder: Path, edits: Edits) -> Packed:
    if edits.script is not None:
        return pack_script(edits.script, include=edits.include)
    return pack_script(folder / file, folder, include=edits.include)


def placed_faults(faults: Iterable[Fault], read: Document, terms: Terms) -> tuple[Fault, ...]:
    """The faults at their places in this text, which they were not found in; those of a script stay where they are."""
    faults = tuple(faults)
    of_text = (replace(fault, place=None) for fault in faults if not fault.source)
    hidden = secret_lines(read, () if terms.policy is None else terms.policy.env.secrets)
    return (*faults_with_places(of_text, read, hidden), *(fault for fault in faults if fault.source))


def _syntax_fault(script: Path, at: Iterable[PathPart]) -> Fault | None:
    """Why this Python cannot compile the script that is named at this path, at its place in the script; None if it can.

    The script is not run.

    Raises:
        OSError: it cannot be read.
    """
    source = script.read_bytes()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, str(script), "exec", flags=0, dont_inherit=True)
    except SyntaxError as error:
        problem = f"{_PYTHON} cannot compile line {error.lineno or 1}: {one_line(error.msg)}"
        place = _place_in_script(error)
    except (ValueError, RecursionError, MemoryError) as error:  # a NUL, or a tree too deep for the compiler
        problem = f"{_PYTHON} cannot compile it: {error or 'it is nested too deeply'}"
        place = None
    else:
        return None
    here = Path.cwd()
    shown = script.relative_to(here) if script.is_relative_to(here) else script
    return Fault(at=at, problem=problem, place=place, source=str(shown))


def _place_in_script(error: SyntaxError) -> TextPlace | None:
    """Where the script's line is at fault; None if the compiler does not quote the line."""
    text = (error.text or "").rstrip("\r\n")
    if not text.strip():
        return None
    return replace(
        with_quoted_line(TextPlace(line=1, column=max(1, error.offset or 1)), [text], ()),
        line=error.lineno or 1,
    )
