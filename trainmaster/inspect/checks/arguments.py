"""The arguments of the request, or of the image where it has none: does the program take their flags?

A request's `args` replace the Dockerfile's CMD, and its `command` the ENTRYPOINT and the CMD.
Source: ContainerSpec of https://cloud.google.com/vertex-ai/docs/reference/rest/v1/CustomJobSpec
"""

import re
from collections.abc import Iterator, Sequence

from trainmaster.inspect.checks.examined import Check, Examined
from trainmaster.inspect.checks.parameters import CommandLine, command_line_of, takes_both_spellings
from trainmaster.inspect.checks.survive import has_all_flags
from trainmaster.inspect.finding import Finding, Level, Location, Subject, nearest

_FLAG = re.compile(r"--([A-Za-z][\w.-]*)(?:=.*)?", re.DOTALL)
_BUILT_IN = {"help"}
_BUILT_IN_ABSL = {
    "alsologtostderr",
    "flagfile",
    "helpfull",
    "helpshort",
    "log_dir",
    "logger_levels",
    "logtostderr",
    "only_check_args",
    "pdb",
    "pdb_post_mortem",
    "profile_file",
    "run_with_pdb",
    "run_with_profiling",
    "showprefixforinfo",
    "stderrthreshold",
    "undefok",
    "use_cprofile_for_profiling",
    "v",
    "verbosity",
}
"""Source: the flags that absl.app, absl.flags and absl.logging define."""
_SHELLS = {"sh", "bash", "/bin/sh", "/bin/bash"}


def check(examined: Examined) -> Check:
    request, surroundings = examined.request, examined.surroundings
    if request is None:
        return
    given = request.program.args
    starts_by_cmd = surroundings.cmd and not (request.command or request.module or surroundings.entrypoint)
    if starts_by_cmd and given and given[0].startswith("-"):
        yield _replaced(surroundings.cmd, given[0], Location(path=request.path))
    line = command_line_of(examined)
    if (
        not line.exists
        or line.is_open
        or not has_all_flags(examined.program)
        or takes_both_spellings(examined)
    ):
        return
    if given or request.command or request.module:
        place = Location(path=request.path)
        words = (*(request.command or surroundings.entrypoint), *given)
    else:
        place, words = Location(path="Dockerfile"), surroundings.command
    flags = list(dict.fromkeys(_flags(_of_program(words))))
    unknown = [flag for flag in flags if not _takes(line, flag, examined)]
    yield from (_unknown(flag, line, place) for flag in unknown)
    if flags and not unknown:
        yield Subject.ARGUMENTS.fine(f"The program takes {', '.join(f'--{flag}' for flag in flags)}", place)


def _replaced(cmd: Sequence[str], first: str, place: Location) -> Finding:
    start = ", ".join(f'"{word}"' for word in cmd)
    return Subject.ARGUMENTS.fault(
        f"The request's args replace the Dockerfile's CMD [{start}], which starts the program",
        place,
        cost=f"The container starts {first!r} as its program and fails, after its machine has started.",
        repair=f"Write ENTRYPOINT [{start}] in the Dockerfile in place of CMD.",
    )


def _of_program(words: Sequence[str]) -> Sequence[str]:
    """The program's own arguments, without those of its interpreter or launcher."""
    if _SHELLS & set(words[:2]):
        return ()
    if "--" in words:  # a launcher's own arguments come before
        words = words[list(words).index("--") + 1 :]
    for number, word in enumerate(words):
        if word == "-m":
            return words[number + 2 :]
        if word.endswith(".py") and not word.startswith("-"):
            return words[number + 1 :]
    return words


def _flags(words: Sequence[str]) -> Iterator[str]:
    return (found[1] for word in words if (found := _FLAG.fullmatch(word)) is not None)


def _takes(line: CommandLine, flag: str, examined: Examined) -> bool:
    if line.flag(flag) is not None or flag in _BUILT_IN:
        return True
    if any(name.partition(".")[0] == "absl" for name in examined.program.imported):
        return flag in _BUILT_IN_ABSL or line.flag(flag.removeprefix("no")) is not None
    return flag.startswith("no-") and line.flag(flag.removeprefix("no-")) is not None


def _unknown(flag: str, line: CommandLine, place: Location) -> Finding:
    meant = nearest(flag, [each.name for each in line.flags])
    if line.ignores is not None:
        return Subject.ARGUMENTS.fault(
            f"--{flag} is given, and the program declares no such flag; parse_known_args at {line.ignores} drops it."
            f"{meant}",
            place,
            level=Level.WARNING,
            cost="The program runs without it.",
            repair="Correct the flag, declare it, or leave it out.",
        )
    return Subject.ARGUMENTS.fault(
        f"--{flag} is given, and the program declares no such flag.{meant}",
        place,
        repair="Correct the flag, declare it in the program, or leave it out.",
    )
