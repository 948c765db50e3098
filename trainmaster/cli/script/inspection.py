"""What `submit` reports about a script before it sends it: the errors that `trainmaster inspect` finds in its source."""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainmaster.inspect.finding import Finding
    from trainmaster.orchestrator.core.requests.request import Request


def script_warnings(script: Path, request: "Request", file: str) -> Iterator[str]:
    """A line for each error, and the command that explains them. Nothing is run; some hundredths of a second.

    Args:
        script: on this machine.
        request: that runs it.
        file: the request's, or empty if it has none.
    """
    from trainmaster.inspect.finding import relative_to_cwd

    found = list(_errors(script, request, file))
    for each in found:
        where = f"{each.place}: " if each.place and each.place.path else ""
        sentence = each.found if each.found.endswith((".", "?")) else f"{each.found}."
        yield f"warning: {where}{sentence} {each.cost}"
    if found:
        words = ["trainmaster", "inspect", relative_to_cwd(script), *(["--request", file] if file else [])]
        yield f"It is sent all the same. To see more: {shlex.join(words)}"


def _errors(script: Path, request: "Request", file: str) -> "Iterator[Finding]":
    from trainmaster.inspect.checks import findings_of
    from trainmaster.inspect.checks.examined import Examined
    from trainmaster.inspect.finding import Level, Unusable
    from trainmaster.inspect.request import Request as Examinable
    from trainmaster.inspect.source.tree import find_program, tree_at
    from trainmaster.inspect.surroundings import surroundings_of

    try:
        tree = tree_at(script)
        asked = Examinable(path=file, spec=request.spec)
        examined = Examined(
            program=find_program(tree, None), surroundings=surroundings_of(tree.root), request=asked
        )
        yield from (each for each in findings_of(examined) if each.level is Level.ERROR)
    except (Unusable, OSError, RecursionError):  # what cannot be examined may still run
        return
