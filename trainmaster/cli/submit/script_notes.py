"""What is said of a script: what `trainmaster inspect` finds in its source, what its archive lacks, and where that is."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from trainmaster.cli.verb import talk
from trainmaster.client.terminal import one_line, plural, size_text

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients
    from trainmaster.client.submission.pack import Packed
    from trainmaster.inspect.finding import ProgramFinding
    from trainmaster.orchestrator.core.requests.request import Request

LEFT_OUT_SHOWN = 5
"""Names for each reason why something is not packed."""


def size_warnings(packed: "Packed") -> Iterator[str]:
    """A line with the largest entries of a folder that holds more than a program usually takes."""
    from trainmaster.client.submission.pack import largest_text

    if packed.is_large:
        yield (
            f"warning: {size_text(sum(packed.sizes.values()))} are packed with the script; the largest entries: "
            f"{one_line(largest_text(packed.sizes))}. To leave out data and the results of earlier runs, name them in a "
            ".gitignore beside the script."
        )


def folder_notes(packed: "Packed", noted: set[Path]) -> Iterator[str]:
    """What a folder's archive lacks, and what takes most of it; nothing for the folders in `noted`, which it joins."""
    if packed.folder in noted:
        return
    noted.add(packed.folder)
    for why, names in packed.left_out.items():
        more = f" and {len(names) - LEFT_OUT_SHOWN} more" if len(names) > LEFT_OUT_SHOWN else ""
        yield f"Not packed, because {why}: {', '.join(map(one_line, names[:LEFT_OUT_SHOWN]))}{more}"
    yield from size_warnings(packed)


def upload_script(clients: "Clients", packed: "Packed", team: str | None, noted: set[Path]) -> None:
    """Print the notes on its folder, unless it is in `noted`, upload the archive if it is new, and say where it is."""
    from trainmaster.client.submission.send import send_script

    for line in folder_notes(packed, noted):
        talk(line)
    uri, is_new = send_script(clients, packed, team)
    talk(f"{'Uploaded' if is_new else 'Already there:'} {plural(len(packed.files), 'file')} as {uri}")


def script_warnings(script: Path, request: "Request", file: str) -> Iterator[str]:
    """A line for each error and warning, and the command that explains them. Nothing is run; some hundredths of a second.

    Args:
        script: on this machine.
        request: that runs it.
        file: the request's, or empty if it has none.
    """
    from trainmaster.inspect.finding import Level, relative_to_cwd

    findings = list(_findings(script, request, file))
    for finding in findings:
        where = f"{finding.place}: " if finding.place and finding.place.path else ""
        sentence = finding.found if finding.found.endswith((".", "?")) else f"{finding.found}."
        repair = f" {finding.repair}" if finding.level is Level.WARNING else ""
        yield f"warning: {where}{sentence} {finding.cost}{repair}"
    if findings:
        words = ["trainmaster", "inspect", relative_to_cwd(script), *(["--request", file] if file else [])]
        yield f"It is sent all the same. To see more: {shlex.join(words)}"


def _findings(script: Path, request: "Request", file: str) -> "Iterator[ProgramFinding]":
    from trainmaster.inspect.checks import findings_of
    from trainmaster.inspect.finding import Level, UnusableProgram
    from trainmaster.inspect.request import ProgramRequest
    from trainmaster.inspect.start import Examined, surroundings_of
    from trainmaster.inspect.tree import read_source, tree_at

    try:
        tree = tree_at(script)
        examined = Examined(
            source=read_source(tree, None),
            surroundings=surroundings_of(tree.root),
            request=ProgramRequest(path=file, spec=request.spec),
        )
        for finding in findings_of(examined):
            if finding.level in {Level.ERROR, Level.WARNING}:
                yield finding
    except (UnusableProgram, OSError, RecursionError):  # what cannot be examined may still run
        return
