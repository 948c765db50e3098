"""A trial gets each parameter as a flag, `--name=value`: does the program take it, and can it read the value?

Discrete values may arrive as floats: `--batch_size=128.0` was observed on Vertex AI
(https://github.com/kuds/mesozoic-labs/pull/127), though Google's codelab reads its own with `type=int`
(https://codelabs.developers.google.com/vertex_hyperparameter_tuning).
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from trainmaster.inspect.checks.examined import Check, Examined
from trainmaster.inspect.checks.survive import FLAGS, has_all_flags, reads_settings
from trainmaster.inspect.finding import Finding, Level, Location, Subject, nearest
from trainmaster.inspect.request import Parameter, Request
from trainmaster.inspect.source.module import Module, keyword, last_name, words
from trainmaster.orchestrator.core.requests.spec import ParameterType

ADDERS = {"add_argument", "option", "Option", "add_option"}
DEFINES = re.compile(r"DEFINE_\w+")  # absl.flags
ADDS_FLAGS = re.compile(r"add_\w*(args|arguments)|\w+ArgumentParser")
"""Library functions that declare their own flags, for example `deepspeed.add_config_arguments(parser)`."""
PARSERS = {"parse_args", "parse_known_args", "parse_known_intermixed_args", "parse_intermixed_args"}


@dataclass(frozen=True, kw_only=True)
class Flag:
    """A flag that the source declares by its name; `reads_whole` means `type=int`."""

    name: str
    place: Location
    reads_whole: bool


@dataclass(frozen=True, kw_only=True)
class CommandLine:
    """`is_open`: flags are declared by names that the source does not fix; `ignores`: unknown ones are dropped."""

    flags: tuple[Flag, ...]
    is_open: bool
    ignores: Location | None
    exists: bool

    def flag(self, name: str) -> Flag | None:
        """The flag that takes `--name`: the one of that name or, as in argparse, the only one with that prefix."""
        exact = [flag for flag in self.flags if flag.name == name]
        begun = [flag for flag in self.flags if flag.name.startswith(name)]
        return exact[0] if exact else (begun[0] if len(begun) == 1 else None)


def check(examined: Examined) -> Check:
    request = examined.request
    if request is None or not request.parameters:
        return
    line = command_line_of(examined)
    findings = [_parameter_finding(parameter, line, examined, request) for parameter in request.parameters]
    taken = [
        parameter.name for parameter, found in zip(request.parameters, findings, strict=True) if found is None
    ]
    if taken:
        yield Subject.PARAMETERS.fine(f"The program accepts the study's {', '.join(taken)}")
    yield from (found for found in findings if found is not None)


def command_line_of(examined: Examined) -> CommandLine:
    flags: list[Flag] = []
    is_open, exists, ignores = False, False, None
    for module, call in examined.program.calls():
        name = last_name(call.func)
        if name in ADDERS or DEFINES.fullmatch(name):
            exists = True
            found = list(_declared(module, call, is_absl=name not in ADDERS))
            flags += found
            is_open |= not found and not _is_positional(call)
        elif ADDS_FLAGS.fullmatch(name):
            is_open |= examined.program.called(module, call) is None
        elif name in PARSERS:
            exists = True
            # A second parser of the same program may take what the first leaves.
            ignores = module.place(call) if "known" in name else ignores
    if reads_settings(examined.program):  # what a parser of the program leaves
        here = examined.program.entries[0].shown if examined.program.entries else ""
        spelled = {spelling for name in FLAGS for spelling in (name, name.replace("_", "-"))}
        flags += (Flag(name=each, place=Location(path=here), reads_whole=False) for each in sorted(spelled))
        exists, ignores = True, None
    return CommandLine(flags=tuple(flags), is_open=is_open, ignores=ignores, exists=exists)


def _declared(module: Module, call: ast.Call, *, is_absl: bool) -> Iterator[Flag]:
    place, kind = module.place(call), keyword(call, "type")
    whole = "DEFINE_integer" in last_name(call.func) or (isinstance(kind, ast.Name) and kind.id == "int")
    given = call.args[:1] if is_absl else call.args
    names = [argument.value for argument in given if isinstance(argument, ast.Constant)]
    for name in names:
        if isinstance(name, str) and (is_absl or name.startswith("-")):
            for spelling in name.split("/"):  # click's --shout/--no-shout
                yield Flag(name=spelling.strip().lstrip("-"), place=place, reads_whole=whole)


def _is_positional(call: ast.Call) -> bool:
    return bool(call.args) and isinstance(call.args[0], ast.Constant)


def _parameter_finding(
    parameter: Parameter, line: CommandLine, examined: Examined, request: Request
) -> Finding | None:
    flag = line.flag(parameter.name)
    if flag is not None:
        return _unreadable(parameter, flag)
    here = Location(path=request.path)
    is_known = has_all_flags(examined.program)
    if not line.exists or line.is_open or takes_both_spellings(examined) or not is_known:
        if parameter.name in examined.program.strings and line.exists:
            return None  # declared by a table that the parser is built from
        return Subject.PARAMETERS.unknown(f"whether the program accepts --{parameter.name}", here)
    repair = (
        f'Declare it: parser.add_argument("--{parameter.name}", …).'
        f"{nearest(parameter.name, [flag.name for flag in line.flags])}"
    )
    if line.ignores is not None:
        return Subject.PARAMETERS.fault(
            f"The program does not declare --{parameter.name}; parse_known_args at {line.ignores} drops it",
            here,
            level=Level.WARNING,
            cost="The study varies a value that the program may ignore: all trials would be identical.",
            repair=repair,
        )
    found = f"The study varies {parameter.name!r}, but the program does not declare --{parameter.name}"
    return Subject.PARAMETERS.fault(found, here, repair=repair)


def _unreadable(parameter: Parameter, flag: Flag) -> Finding | None:
    if parameter.type is not ParameterType.DISCRETE or not flag.reads_whole:
        return None
    return Subject.PARAMETERS.fault(
        found=f"--{flag.name} is parsed with type=int, but a discrete parameter may arrive as {parameter.sample!r}",
        place=flag.place,
        level=Level.WARNING,
        cost="Such trials exit with status 2 before they train.",
        repair="Read it with type=lambda text: int(float(text)).",
    )


def takes_both_spellings(examined: Examined) -> bool:
    """Whether dashes and underscores are exchanged somewhere, as programs do with flags."""
    calls = (call for _, call in examined.program.calls() if last_name(call.func) == "replace")
    return any({"-", "_"} == set(words(call)) for call in calls)
