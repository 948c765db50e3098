"""What `submit` reports about a script before it sends it, of what `trainmaster inspect` finds in its source.

Every error, and the warnings about a study's parameters and about requirements.txt, which end a run as errors do.
"""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainmaster.inspect.finding import Finding
    from trainmaster.orchestrator.core.requests.request import Request


def script_warnings(script: Path, request: "Request", file: str) -> Iterator[str]:
    """A line for each, and the command that explains them. Nothing is run; some hundredths of a second.

    Args:
        script: on this machine.
        request: that runs it.
        file: the request's, or empty if it has none.
    """
    from trainmaster.inspect.finding import Level, relative_to_cwd

    found = list(_findings(script, request, file))
    for each in found:
        where = f"{each.place}: " if each.place and each.place.path else ""
        sentence = each.found if each.found.endswith((".", "?")) else f"{each.found}."
        repair = f" {each.repair}" if each.level is Level.WARNING else ""
        yield f"warning: {where}{sentence} {each.cost}{repair}"
    if found:
        words = ["trainmaster", "inspect", relative_to_cwd(script), *(["--request", file] if file else [])]
        yield f"It is sent all the same. To see more: {shlex.join(words)}"


def _findings(script: Path, request: "Request", file: str) -> "Iterator[Finding]":
    from trainmaster.inspect.checks import findings_of
    from trainmaster.inspect.checks.examined import Examined
    from trainmaster.inspect.finding import Level, Subject, Unusable
    from trainmaster.inspect.request import Request as Examinable
    from trainmaster.inspect.source.tree import find_program, tree_at
    from trainmaster.inspect.surroundings import surroundings_of

    try:
        tree = tree_at(script)
        asked = Examinable(path=file, spec=request.spec)
        examined = Examined(
            program=find_program(tree, None), surroundings=surroundings_of(tree.root), request=asked
        )
        reported = {Subject.PARAMETERS, Subject.REQUIREMENTS}
        for each in findings_of(examined):
            if each.level is Level.ERROR or (each.level is Level.WARNING and each.subject in reported):
                yield each
    except (Unusable, OSError, RecursionError):  # what cannot be examined may still run
        return
