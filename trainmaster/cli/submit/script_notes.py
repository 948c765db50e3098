"""Notes on a script: what `trainmaster inspect` finds in its source, what its archive lacks, and where that is."""

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from trainmaster.cli.verb import talk
from trainmaster.client.clients import Clients
from trainmaster.client.terminal import one_line, plural, relative_to_cwd

if TYPE_CHECKING:
    from trainmaster.client.submission.examination import Examination
    from trainmaster.client.submission.pack import Packed
    from trainmaster.inspect.finding import ProgramFinding

LEFT_OUT_SHOWN = 5
"""Names for each reason why something is not packed."""


def folder_notes(packed: "Packed", noted: set[Path]) -> Iterator[str]:
    """What a folder's archive lacks; nothing for the folders in `noted`, which it joins."""
    if packed.folder in noted:
        return
    noted.add(packed.folder)
    yield from packed.notes
    for why, names in packed.left_out.items():
        more = f" and {len(names) - LEFT_OUT_SHOWN} more" if len(names) > LEFT_OUT_SHOWN else ""
        yield f"Not packed, because {why}: {', '.join(map(one_line, names[:LEFT_OUT_SHOWN]))}{more}"


def upload_script(clients: Clients, packed: "Packed", team: str | None, noted: set[Path]) -> None:
    """Print the notes on its folder, unless it is in `noted`, upload the archive if it is new, and say where it is."""
    from trainmaster.client.submission.send import send_script

    for line in folder_notes(packed, noted):
        talk(line)
    uri, is_new = send_script(clients, packed, team)
    talk(f"{'Uploaded' if is_new else 'Already there:'} {plural(len(packed.files), 'file')} as {uri}")


def certain_findings(request: "Examination") -> "list[ProgramFinding]":
    """Why the program would certainly end as soon as it reads its command line."""
    from trainmaster.inspect.finding import FindingSubject, Level

    flags = {FindingSubject.ARGUMENTS, FindingSubject.PARAMETERS}
    return [each for each in _findings(request) if each.level is Level.ERROR and each.subject in flags]


def certain_lines(certain: "Iterable[ProgramFinding]") -> list[str]:
    """These, for people, each with its repair."""
    lines = [f"{_line_of(finding, 'error')} {finding.repair}" for finding in certain]
    return [*lines, "To send it all the same: --force"] if lines else []


def script_warnings(request: "Examination") -> Iterator[str]:
    """A line for each error and warning, and the command that explains them. Nothing is run; some hundredths of a second."""
    from trainmaster.inspect.finding import Level

    findings = list(_findings(request))
    for finding in findings:
        repair = f" {finding.repair}" if finding.level is Level.WARNING else ""
        yield f"{_line_of(finding, 'warning')}{repair}"
    if findings and request.packed is not None:
        words = ["trainmaster", "inspect", relative_to_cwd(request.packed.script)]
        words += ["--request", request.source.file] if request.source.is_named else []
        yield f"It is sent all the same. To see more: {shlex.join(words)}"


def _line_of(finding: "ProgramFinding", level: str) -> str:
    where = f"{finding.place}: " if finding.place and finding.place.path else ""
    sentence = finding.found if finding.found.endswith((".", "?")) else f"{finding.found}."
    return f"{level}: {where}{sentence} {finding.cost}"


def _findings(request: "Examination") -> "Iterator[ProgramFinding]":
    from trainmaster.inspect.checks import findings_of
    from trainmaster.inspect.finding import FindingSubject, Level, UnusableProgram
    from trainmaster.inspect.request import ProgramRequest
    from trainmaster.inspect.start import Examined, surroundings_of
    from trainmaster.inspect.tree import read_source, tree_at

    packed, is_python = request.packed, not any(warning.source for warning in request.warnings)
    if packed is None or request.request is None or not is_python:
        return
    try:
        own = tree_at(packed.script)
        tree = replace(own, root=packed.folder) if own.root.is_relative_to(packed.folder) else own
        examined = Examined(
            source=read_source(tree, None),
            surroundings=surroundings_of(own.root),
            request=ProgramRequest(
                path=request.source.file if request.source.is_named else "", spec=request.request.spec
            ),
        )
        for finding in findings_of(examined):
            # What args of two words reach is a warning of the request itself.
            is_said = finding.subject is FindingSubject.ARGUMENTS and finding.level is Level.WARNING
            if finding.level in {Level.ERROR, Level.WARNING} and not is_said:
                yield finding
    except (UnusableProgram, OSError, RecursionError):  # what cannot be examined may still run
        return
