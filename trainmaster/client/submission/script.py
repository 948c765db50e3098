"""The script of this machine that a request or a rule names: packed, and named in the document by its archive."""

import os
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trainmaster.client.errors import ClientRefused
from trainmaster.client.submission.edits import NO_EDITS, Edits
from trainmaster.client.submission.pack import Packed, pack_script
from trainmaster.client.submission.project.dependencies import PROJECT_FILES, Dependencies, find_dependencies
from trainmaster.client.submission.project.imports import certain_ends
from trainmaster.client.submission.project.root import (
    ProjectRefused,
    file_of_program,
    find_root,
    launcher_files,
)
from trainmaster.client.submission.source import RequestSource, check_below
from trainmaster.client.submission.terms import Terms
from trainmaster.client.terminal import one_line, relative_to_cwd
from trainmaster.orchestrator.core.documents.document import Document
from trainmaster.orchestrator.core.documents.faults import Fault, PathPart, Suggestions, json_path
from trainmaster.orchestrator.core.documents.places import TextPlace, with_quoted_line
from trainmaster.orchestrator.core.documents.placing import faults_with_places
from trainmaster.orchestrator.core.documents.values import at, list_at, mapping_at
from trainmaster.orchestrator.core.names import object_uri, script_object
from trainmaster.orchestrator.core.requests.checks.secrets import secret_lines
from trainmaster.orchestrator.core.requests.draft import SCRIPT
from trainmaster.orchestrator.core.requests.evaluation import EVALUATE
from trainmaster.orchestrator.core.requests.script import REQUIREMENTS

NO_HASH = "0" * 64
"""In the name of an archive that is not packed, so that all else in the document is checked."""
_FORCE = ", or send it all the same with --force"
SENT = "it is sent all the same: the image may be able to run it"
_PYTHON = f"Python {sys.version_info[0]}.{sys.version_info[1]}"


@dataclass(frozen=True, kw_only=True)
class ScriptedRequest:
    """A request whose script is on a machine, with the archive that `request` names.

    Attributes:
        packed: the archive; None if the script cannot be packed, or is on another machine. The name is then a sample.
        evaluator: the same of the script that scores the model.
        local: the keys whose scripts are on a machine, `script` and `evaluate`.
        faults: why the script cannot be sent, without their places in the request.
        warnings: doubts about it, and with `edits.force` why it would end at once.
    """

    request: dict[str, Any]  # Any: values that no schema has validated
    packed: Packed | None = None
    evaluator: Packed | None = None
    local: frozenset[str] = frozenset({SCRIPT})
    faults: tuple[Fault, ...] = ()
    warnings: tuple[Fault, ...] = ()

    def faults_beside(self, known: Iterable[Fault]) -> list[Fault]:
        """Those of the script at places that have no known fault."""
        paths = {fault.path for fault in known}
        return [fault for fault in self.faults if fault.path not in paths]


def with_archives(
    request: Mapping[str, Any],
    source: RequestSource,
    terms: Terms,
    edits: Edits,
    above: Sequence[PathPart] = (),
) -> ScriptedRequest:
    """The same as `_with_archive`, also of the script that scores the model, which no option changes.

    Without a script on a machine it is the request as it was, and `local` is empty.
    """
    own, evaluate = _with_archive(request, source, terms, edits, above), mapping_at(request, *EVALUATE)
    own = own or ScriptedRequest(request=dict(request), local=frozenset())
    image = {"image": request["image"]} if request.get("image") else {}
    place = (*above, *EVALUATE)
    given = {**image, **evaluate}
    other = _with_archive(given, source, terms, NO_EDITS, place) if SCRIPT in evaluate else None
    if other is None:
        return own
    evaluate = {**evaluate, SCRIPT: other.request[SCRIPT]}
    return replace(
        own,
        request={**own.request, "champion": {**own.request["champion"], "evaluate": evaluate}},
        evaluator=other.packed,
        local=own.local | {"evaluate"},
        faults=(*own.faults, *other.faults),
        warnings=(*own.warnings, *other.warnings),
    )


def _with_archive(
    request: Mapping[str, Any],
    source: RequestSource,
    terms: Terms,
    edits: Edits,
    above: Sequence[PathPart] = (),
) -> ScriptedRequest | None:
    """The request with the name of its script's archive; None if its script is not one of a machine.

    Reads the root of the script's project; uploads nothing.

    Args:
        request: in our own dialect, with its edits.
        source: it comes from.
        terms: name the bucket of the archive.
        edits: `script`, `module`, `root`, `include` and `force`.
        above: the path of the request in its document.

    Raises:
        ClientRefused: the script of `edits` cannot be packed. That one of the request's own cannot be is a fault.
    """
    # A misspelt key has its own fault.
    near = (key for key in request if isinstance(key, str) and Suggestions().find(key, (SCRIPT,)))
    key = SCRIPT if SCRIPT in request else next(near, SCRIPT)
    names = [name for name in ("file", "module") if at(request, key, name) is not None]
    if len(names) != 1 or at(request, key, "archive") is not None:
        return None
    named: Mapping[str, Any] = request[key]
    (name,) = names
    packed, faults, warnings = None, list[Fault](), list[Fault]()
    if key == SCRIPT and source.folder is not None and isinstance(named[name], str):
        try:
            packed, needs = _pack_named_script(named, name, source.folder, edits, source.below)
            has_image = request.get("image") is not None
            warnings += [Fault(at=(name,), problem=doubt) for doubt in needs.doubts if not has_image]
            ends = _certain_ends(packed, named, name, None if has_image else needs)
            if has_image or edits.force:
                warnings += [replace(fault, repair=SENT) for fault in ends]
            else:
                faults += ends
        except ClientRefused as refused:
            if edits.script is not None or edits.module is not None:
                raise
            part = refused.part if isinstance(refused, ProjectRefused) else name
            faults.append(Fault(at=(part,), problem=str(refused)))
        except OSError as error:  # a name that is too long, or a folder that may not be read
            raise ClientRefused(f"The script: {error.strerror or error}: {error.filename!r:.300}") from error

    def in_document(path: str) -> str:
        return f"{json_path((*above, SCRIPT))}{path.removeprefix('$')}"

    archive = script_object(NO_HASH if packed is None else packed.sha256, terms.team)
    script = {**named, "archive": object_uri(terms.context.data_bucket, archive)}
    script |= {"file": packed.file} if packed is not None and name == "file" else {}
    return ScriptedRequest(
        request={**request, key: script},
        packed=packed,
        faults=tuple(fault.moved(in_document) for fault in faults),
        warnings=tuple(fault.moved(in_document) for fault in warnings),
    )


def _pack_named_script(
    named: Mapping[str, Any], name: str, folder: Path, edits: Edits, below: Path | None
) -> tuple[Packed, Dependencies]:
    """The archive of the script's root, and what its project needs. No file outside `below` is read."""
    given = edits.root or (folder / named["root"] if isinstance(named.get("root"), str) else None)
    _check_below(below, given or folder)
    if given is not None and not given.is_dir():
        raise ProjectRefused(f"The root {str(given)!r} is not a folder. Name one from the request's.")
    script = edits.script or (given or folder) / named["file"] if name == "file" else None
    _check_below(below, (given or folder) / named["module"] if script is None else script)
    beside = _absolute(given or folder if script is None else script.parent)
    found = None if given else find_root(beside)
    root = found[0] if found else beside if edits.script and not given else _absolute(given or folder)
    if script is None:
        script = file_of_program(named["module"], root)
    folders = (each for each in _absolute(script).parents if each.is_relative_to(root))
    _check_below(below, root, script, *(each / name for each in folders for name in PROJECT_FILES))
    needs, more, notes = Dependencies(), dict[str, bytes](), list[str]()
    if script.is_file() and _absolute(script).is_relative_to(root):
        parts = (
            [each for each in list_at(named, key) if isinstance(each, str)] for key in ("extras", "groups")
        )
        try:
            needs = find_dependencies(_absolute(script), root, *parts)
        except OSError as error:
            raise ClientRefused(f"{error.filename}: {error.strerror or error}") from error
        more |= {REQUIREMENTS: needs.packed.encode()} if needs.packed else {}
    if named.get("launcher", "none") != "none":
        more |= launcher_files()
    if found is not None and root != beside:
        notes.append(
            f"Packs {relative_to_cwd(root)}, which has {found[1]}. For another root: --root DIR, or script.root"
        )
    shown = root if script.is_file() or not edits.script else None
    try:
        packed = pack_script(script, shown, include=edits.include, more=more)
    except ClientRefused as error:
        raise ClientRefused(". ".join([*notes[:1], str(error)])) from error
    if needs.source:
        notes.append(f"Installs the packages of {needs.source}")
    return replace(packed, notes=tuple(notes)), needs


def _check_below(below: Path | None, *paths: Path) -> None:
    """As `check_below`, by both ways to resolve `..` behind a link."""
    for path in paths:
        check_below(below, path)
        check_below(below, _absolute(path))


def _certain_ends(
    packed: Packed, named: Mapping[str, Any], name: str, needs: Dependencies | None
) -> list[Fault]:
    """Why the script would end as soon as it starts; without `needs`, only whether this Python compiles its own file."""
    fault = _syntax_fault(packed.script, (name,))
    if fault or needs is None:
        return [fault] if fault else []
    try:
        ends = [*certain_ends(packed, needs, named)]
    except SyntaxError as error:
        fault = _syntax_fault(Path(error.filename or ""), (name,))
        ends = [replace(fault, repair="correct it")] if fault else []
    return [replace(fault, repair=f"{fault.repair}{_FORCE}") for fault in ends]


def _absolute(path: Path) -> Path:
    return Path(os.path.normpath(path.absolute()))


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
    return Fault(at=at, problem=problem, place=place, source=relative_to_cwd(script))


def _place_in_script(error: SyntaxError) -> TextPlace | None:
    """Where the script's line is at fault; None if the compiler does not quote the line."""
    text = (error.text or "").rstrip("\r\n")
    if not text.strip():
        return None
    return replace(
        with_quoted_line(TextPlace(line=1, column=max(1, error.offset or 1)), [text], ()),
        line=error.lineno or 1,
    )
