"""The flags that the request gives, and that a trial gets for its parameters: does the program name them?

A trial gets each parameter as `--name=value`. Discrete values may arrive as floats: `--batch_size=128.0` was observed
on Vertex AI (https://github.com/kuds/mesozoic-labs/pull/127), though Google's codelab reads its own with `type=int`
(https://codelabs.developers.google.com/vertex_hyperparameter_tuning).
"""

import ast
import re
from collections.abc import Iterator

from trainmaster.inspect.finding import FindingSubject, Level, SourceLocation, nearest, some_of
from trainmaster.inspect.program import ProgramSource, called_name, iter_words
from trainmaster.inspect.start import Check, Examined
from trainmaster.orchestrator.core.requests.spec import ParameterType

GIVEN = re.compile(r"--([A-Za-z][\w.-]*)(?:=.*)?", re.DOTALL)
ADDS_FLAGS = re.compile(r"add_\w*(args|arguments)|\w+ArgumentParser|DEFINE_\w+|settings_from")
"""Functions that declare flags for others: absl's, trainer.survive's, and such as `deepspeed.add_config_arguments`."""
STRICT, LENIENT = {"parse_args", "parse_intermixed_args"}, {"parse_known_args", "parse_known_intermixed_args"}


def check(examined: Examined) -> Check:
    request, source, start = examined.request, examined.source, examined.start
    if request is None or start.shell_text is not None or start.replaced_cmd:
        return
    gap, drops_at = _gap(source), next(_dropped_rests(source), None)
    given = [match[1] for word in start.arguments if (match := GIVEN.fullmatch(word))]
    rows = [(FindingSubject.ARGUMENTS, name, start.place) for name in dict.fromkeys(given)]
    here, unsure = SourceLocation(path=request.path), []
    rows += [(FindingSubject.PARAMETERS, parameter.name, here) for parameter in request.parameters]
    named = {text.lstrip("-") for text in source.strings if " " not in text} | {"help"}
    for subject, name, place in rows:
        if gap or any(text.startswith(name.removeprefix("no-")) for text in named):
            unsure.append(f"--{name}")
            continue
        found = f"The program gets --{name}, and names no such flag"
        repair = f"Correct it, or declare it.{nearest(name, named)}"
        if drops_at is None:
            yield subject.fault(found, place, repair=repair)
        else:
            found = f"{found}; parse_known_args at {drops_at} drops it"
            cost = "The value has no effect: with a study, all trials are alike."
            yield subject.fault(found, place, level=Level.WARNING, cost=cost, repair=repair)
    if unsure:
        seen = gap or "a smoke run of a study shows whether values arrive"
        yield rows[-1][0].not_followed(f"whether the program uses {some_of(unsure)}: {seen}", rows[-1][2])
    whole = {name: module.place(call) for module, call, _ in source.calls() for name in _whole_flags(call)}
    for parameter in request.parameters:
        if parameter.type is ParameterType.DISCRETE and parameter.name in whole:
            yield FindingSubject.PARAMETERS.fault(
                f"--{parameter.name} is parsed with type=int, but a discrete parameter may arrive as {parameter.samples[0]!r}",
                whole[parameter.name],
                level=Level.WARNING,
                cost="Such trials exit with status 2 before they train.",
                repair="Read it with type=lambda text: int(float(text)).",
            )


def _gap(source: ProgramSource) -> str:
    """Why the program may take flags that its source does not name; empty if it takes no others."""
    names = {name: module.place(call) for module, call, name in source.calls()}
    others = [module.place(call) for module, call, name in source.calls() if _may_declare_others(call, name)]
    lenient = [name for _, _, name in source.calls() if name in LENIENT]
    if source.gap:
        return source.gap
    if others:
        return f"flags without a name in the source may be declared at {others[0]}"
    if not names.keys() & (STRICT | LENIENT):
        return "no call of argparse that parses flags is in the source"
    if any(name == "replace" and {"-", "_"} == set(iter_words(call)) for _, call, name in source.calls()):
        return "it replaces dashes by underscores, or the reverse"
    if len(lenient) > len([*_dropped_rests(source)]):
        return f"what parse_known_args leaves at {names[lenient[0]]} is used"
    return ""


def _may_declare_others(call: ast.Call, name: str) -> bool:
    is_named = bool(call.args) and isinstance(call.args[0], ast.Constant)
    return ADDS_FLAGS.fullmatch(name) is not None or (name == "add_argument" and not is_named)


def _whole_flags(call: ast.Call) -> Iterator[str]:
    """The flags that this call declares with `type=int`."""
    kinds = [keyword.value for keyword in call.keywords if keyword.arg == "type"]
    if any(isinstance(kind, ast.Name) and kind.id == "int" for kind in kinds):
        yield from (text.lstrip("-") for given in call.args for text in iter_words(given))


def _dropped_rests(source: ProgramSource) -> Iterator[SourceLocation]:
    """The calls of `parse_known_args` whose rest nothing can read."""
    for module in source.modules:
        names = (node for node in module.nodes if isinstance(node, ast.Name))
        loaded = {name.id for name in names if isinstance(name.ctx, ast.Load)}
        for node in module.nodes:
            match node:
                case ast.Assign(targets=[ast.Tuple(elts=[_, ast.Name(id=rest)])], value=call):
                    is_dropped = rest not in loaded
                case ast.Subscript(value=call, slice=ast.Constant(value=0)):
                    is_dropped = True
                case _:
                    continue
            if is_dropped and called_name(call) in LENIENT:
                yield module.place(node)
