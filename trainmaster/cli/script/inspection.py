"""The warnings of `submit` about a script, of what `trainmaster inspect` finds in its source.

Every error and warning.
"""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainmaster.inspect.finding import ProgramFinding
    from trainmaster.orchestrator.core.requests.request import Request as CheckedRequest


def script_warnings(script: Path, request: "CheckedRequest", file: str) -> Iterator[str]:
    """A line for each, and the command that explains them. Nothing is run; some hundredths of a second.

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


def _findings(script: Path, request: "CheckedRequest", file: str) -> "Iterator[ProgramFinding]":
    from trainmaster.inspect.checks import findings_of
    from trainmaster.inspect.checks.examined import Examined
    from trainmaster.inspect.finding import Level, UnusableProgram
    from trainmaster.inspect.request import ProgramRequest as Examinable
    from trainmaster.inspect.surroundings import surroundings_of
    from trainmaster.inspect.tree import read_source, tree_at

    try:
        tree = tree_at(script)
        examined = Examined(
            source=read_source(tree, None),
            surroundings=surroundings_of(tree.root),
            request=Examinable(path=file, spec=request.spec),
        )
        for finding in findings_of(examined):
            if finding.level in {Level.ERROR, Level.WARNING}:
                yield finding
    except (UnusableProgram, OSError, RecursionError):  # what cannot be examined may still run
        return
