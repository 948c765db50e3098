"""Values that come from an environment variable unchanged, or as the beginning of a longer path."""

import ast
from collections.abc import Iterator

from trainmaster.inspect.source.module import FunctionNode, Module, assigned, keyword
from trainmaster.inspect.source.origins import ENVIRONMENT, MAX_DEPTH, given_for, parameters_of
from trainmaster.inspect.source.program import Program

MADE_OF = {
    "os.fspath",
    "os.path.abspath",
    "os.path.expanduser",
    "os.path.join",
    "pathlib.Path",
    "pathlib.PurePath",
    "pathlib.PurePosixPath",
    "str",
}
"""What makes a path of its first argument, or of all."""
METHODS = {"absolute", "as_posix", "joinpath", "resolve", "rstrip", "strip"}


def comes_from(variable: str, program: Program, module: Module, node: ast.expr, depth: int = 0) -> bool:
    """Whether the value begins with that of the variable, through assignments, flags' defaults and own functions.

    False where the source does not show it.
    """
    if depth > MAX_DEPTH:
        return False
    match node:
        case ast.Subscript(value=value, slice=ast.Constant(value=name)):
            found = module.dotted(value) in ENVIRONMENT and name == variable
        case ast.Attribute(attr=flag) if module.dotted(node) is None:
            defaults = defaults_of(program, flag)
            found = any(comes_from(variable, program, home, each, depth + 1) for home, each in defaults)
        case ast.Call():
            found = _of_call(variable, program, module, node, depth)
        case ast.Name():
            found = _of_name(variable, program, module, node, depth)
        case _:
            found = any(comes_from(variable, program, module, each, depth + 1) for each in _beginnings(node))
    return found


def _beginnings(node: ast.expr) -> list[ast.expr]:
    """What a text or a path that is put together can begin with."""
    match node:
        case ast.BinOp(left=value, op=ast.Add() | ast.Div()) | ast.NamedExpr(value=value):
            return [value]
        case ast.JoinedStr(values=[ast.FormattedValue(value=value), *_]):
            return [value]
        case ast.BoolOp(values=values):
            return values
        case ast.IfExp(body=body, orelse=orelse):
            return [body, orelse]
        case _:
            return []


def _of_call(variable: str, program: Program, module: Module, call: ast.Call, depth: int) -> bool:
    name = module.dotted(call.func) or (call.func.id if isinstance(call.func, ast.Name) else "")
    first = call.args[0] if call.args else None
    if name in ENVIRONMENT:
        return isinstance(first, ast.Constant) and first.value == variable
    if name in MADE_OF:
        return first is not None and comes_from(variable, program, module, first, depth + 1)
    if (target := program.called(module, call)) is not None:
        returned = (node.value for node in ast.walk(target[0].node) if isinstance(node, ast.Return))
        home = target[0].module
        return any(
            value is not None and comes_from(variable, program, home, value, depth + 1) for value in returned
        )
    is_method = isinstance(call.func, ast.Attribute) and call.func.attr in METHODS
    return is_method and comes_from(variable, program, module, call.func.value, depth + 1)  # type: ignore[attr-defined]  # an Attribute


def _of_name(variable: str, program: Program, module: Module, name: ast.Name, depth: int) -> bool:
    return any(
        comes_from(variable, program, home, value, depth + 1)
        for home, value in values_of(program, module, name)
    )


def values_of(program: Program, module: Module, name: ast.Name) -> Iterator[tuple[Module, ast.expr]]:
    """What the name is given where it is assigned, or as a parameter by every caller; nothing where none shows."""
    for scope in (module.function_of(name), module.tree):
        if scope is None:
            continue
        if values := list(assigned(scope, name.id)):
            yield from ((module, value) for value in values)
            return
        if isinstance(scope, FunctionNode) and name.id in parameters_of(scope):
            function = program.function_around(module, name)
            if function is None or function.node is not scope:
                return
            for site, call in program.call_sites(function):
                if (given := given_for(function, call, name.id)) is not None:
                    yield site, given
            return


def defaults_of(program: Program, flag: str) -> list[tuple[Module, ast.expr]]:
    """The defaults of the flag that argparse stores under that name."""
    found = []
    for module, call in program.calls():
        if isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument":
            names = {
                each.value.lstrip("-").replace("-", "_")
                for each in call.args
                if isinstance(each, ast.Constant) and isinstance(each.value, str)
            }
            default = keyword(call, "default")
            if flag in names and default is not None:
                found.append((module, default))
    return found
