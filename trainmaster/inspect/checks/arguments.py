"""The arguments of the request: do they reach the program as they are meant?

A request's `args` replace the Dockerfile's CMD, and its `command` the ENTRYPOINT and the CMD.
"""

import re

from trainmaster.inspect.finding import FindingSubject, Level, SourceLocation
from trainmaster.inspect.start import Check, Examined, shell_text_of

TWO_WORDS = re.compile(r"(--?[A-Za-z][\w.-]*)\s+(\S.*)", re.DOTALL)


def check(examined: Examined) -> Check:
    request, start = examined.request, examined.start
    if request is None:
        return
    appended = (*request.program.args, *(f"--{parameter.name}" for parameter in request.parameters))
    if appended and start.drops_arguments:
        yield FindingSubject.ARGUMENTS.fault(
            f"A shell runs `{start.shell_text}`, and ignores arguments: {appended[0]} does not reach the program",
            start.place,
            cost="Every run has the program's own defaults, and all trials of a study are alike.",
            repair='Write the command, or the ENTRYPOINT, as a list without a shell: ["python", "-m", "trainer.task"].',
        )
    if appended and appended[0].startswith("-") and start.replaced_cmd:
        replaced, first = start.replaced_cmd, appended[0]
        words = ", ".join(f'"{word}"' for word in (shell_text_of(replaced) or "").split() or replaced)
        yield FindingSubject.ARGUMENTS.fault(
            f"Arguments replace the Dockerfile's CMD [{words}], which starts the program",
            SourceLocation(path=request.path),
            cost=f"The container starts {first!r} as its program and fails, after its machine has started.",
            repair=f"Write ENTRYPOINT [{words}] in the Dockerfile in place of CMD.",
        )
    for word in request.program.args if start.shell_text is None else ():
        if match := TWO_WORDS.fullmatch(word):
            yield FindingSubject.ARGUMENTS.fault(
                f"{word!r} in args holds two words, and reaches the program as one",
                SourceLocation(path=request.path),
                level=Level.WARNING,
                repair=f"Write {match[1]}={match[2]}, or two elements.",
            )
