"""The origin of a value: the texts that it can be and, for a path, whether all replicas have the same."""

import ast
from collections.abc import Sequence
from enum import Enum

from trainmaster.inspect.source.guards import ROLE_NAME, checks_role, guards_of
from trainmaster.inspect.source.module import FunctionNode, Module, argument, assigned, keyword, last_name
from trainmaster.inspect.source.program import Function, Program

MAX_DEPTH = 8
MADE_OF_ARGUMENTS = {"join", "Path", "str", "format", "replace", "rstrip", "strip", "expanduser", "abspath", "absolute", "fspath", "resolve", "as_posix", "makedirs", "PurePath"}  # fmt: skip
OWN_MAKERS = {
    "mkdtemp",
    "TemporaryDirectory",
    "gettempdir",
    "uuid4",
    "gethostname",
    "getpid",
    "node",
    "mkstemp",
}
ENVIRONMENT = {"os.environ", "os.environ.get", "os.getenv"}


class Origin(Enum):
    """How a path differs between replicas of one job."""

    SAME = "the same on every replica"
    OWN = "depends on the replica"
    UNKNOWN = "not known"


def origin_of(program: Program, module: Module, node: ast.expr, depth: int = 0) -> Origin:
    """The origin of the value of `node`, traced through assignments, parameters and the program's own functions."""
    if depth > MAX_DEPTH:
        return Origin.UNKNOWN
    if (parts := _parts(node)) is not None:
        return _mixed([origin_of(program, module, part, depth + 1) for part in parts])
    match node:
        case ast.IfExp(test=test, body=body, orelse=orelse):
            origins = [origin_of(program, module, side, depth + 1) for side in (body, orelse)]
            found = Origin.OWN if checks_role(program, module, test) else _mixed(origins)
        case ast.Subscript(value=value) if module.dotted(value) in ENVIRONMENT:
            found = Origin.OWN if checks_role(program, module, node) else Origin.SAME
        case ast.Attribute(attr=attribute) if ROLE_NAME.search(attribute):
            found = Origin.OWN
        case ast.Subscript(value=value) | ast.Attribute(value=value):
            found = origin_of(program, module, value, depth + 1)
        case ast.Call():
            found = _of_call(program, module, node, depth)
        case ast.Name():
            found = _of_name(program, module, node, depth)
        case _:
            found = Origin.UNKNOWN
    return found


def _parts(node: ast.expr) -> list[ast.expr] | None:
    """What a text or path is put together from; a constant from nothing. None: it is no such thing."""
    match node:
        case ast.Constant():
            return []
        case ast.JoinedStr(values=values) | ast.BoolOp(values=values):
            return values
        case ast.FormattedValue(value=value) | ast.Starred(value=value) | ast.NamedExpr(value=value):
            return [value]
        case ast.BinOp(left=left, right=right):
            return [left, right]
        case _:
            return None


def _mixed(origins: list[Origin]) -> Origin:
    """One part that depends on the replica makes the whole depend on it."""
    if Origin.OWN in origins:
        return Origin.OWN
    return Origin.UNKNOWN if Origin.UNKNOWN in origins else Origin.SAME


def _of_call(program: Program, module: Module, call: ast.Call, depth: int) -> Origin:
    if checks_role(program, module, call) or last_name(call.func) in OWN_MAKERS:
        return Origin.OWN
    if module.dotted(call.func) in ENVIRONMENT:
        return Origin.SAME
    if last_name(call.func) in {"parse_args", "parse_known_args"}:
        return Origin.SAME  # all replicas of the pools of one program get one command line
    given = [*call.args, *(argument.value for argument in call.keywords)]
    origins = [origin_of(program, module, argument, depth + 1) for argument in given]
    target = program.called(module, call)
    if target is not None:
        returned = [
            node.value
            for node in ast.walk(target[0].node)
            if isinstance(node, ast.Return | ast.Yield) and node.value is not None
        ]
        found = [origin_of(program, target[0].module, value, depth + 1) for value in returned]
        return _mixed(found) if found else Origin.UNKNOWN
    if last_name(call.func) in MADE_OF_ARGUMENTS:
        if isinstance(call.func, ast.Attribute) and module.dotted(call.func.value) is None:
            origins.append(origin_of(program, module, call.func.value, depth + 1))
        return _mixed(origins)
    return Origin.OWN if Origin.OWN in origins else Origin.UNKNOWN


def _of_name(program: Program, module: Module, name: ast.Name, depth: int) -> Origin:
    if ROLE_NAME.search(name.id):
        return Origin.OWN
    function = module.function_of(name)
    for scope in (function, module.tree):
        if scope is None:
            continue
        values = list(assigned(scope, name.id))
        if any(
            checks_role(program, module, guard.test) for value in values for guard in guards_of(module, value)
        ):
            return Origin.OWN
        if values:
            return _mixed([origin_of(program, module, value, depth + 1) for value in values])
        if isinstance(scope, FunctionNode) and name.id in parameters_of(scope):
            return _of_parameter(program, module, scope, name, depth)
    return Origin.UNKNOWN


def parameters_of(function: FunctionNode) -> list[str]:
    """The names of its parameters, in order, without those that collect others."""
    arguments = function.args
    return [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def _of_parameter(
    program: Program, module: Module, scope: FunctionNode, name: ast.Name, depth: int
) -> Origin:
    """The values that callers pass for it; unknown if no caller is found."""
    function = program.function_around(module, name)
    if function is None or function.node is not scope:
        return Origin.UNKNOWN
    origins = []
    for site, call in program.call_sites(function):
        given = given_for(function, call, name.id)
        origins.append(Origin.UNKNOWN if given is None else origin_of(program, site, given, depth + 1))
    return _mixed(origins) if origins else Origin.UNKNOWN


def given_for(function: Function, call: ast.Call, name: str) -> ast.expr | None:
    """What the call of the function gives for its parameter of that name."""
    positional = [each.arg for each in (*function.node.args.posonlyargs, *function.node.args.args)]
    if function.is_called_on_object:
        positional = positional[1:]
    return argument(call, [name], positional.index(name)) if name in positional else keyword(call, name)


def texts_of(
    program: Program, module: Module, node: ast.expr | None, depth: int = 0
) -> frozenset[str] | None:
    """Every text that `node` can be; None where the source does not fix it."""
    match node if depth <= MAX_DEPTH else None:
        case ast.Constant(value=str(text)):
            return frozenset({text})
        case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
            return _joined(program, module, elements, depth)
        case ast.IfExp(body=body, orelse=orelse):
            return _joined(program, module, [body, orelse], depth)
        case ast.Name() | ast.Attribute() as name:
            return _texts_named(program, module, name, depth)
        case _:
            return None


def _joined(program: Program, module: Module, nodes: Sequence[ast.expr], depth: int) -> frozenset[str] | None:
    """The texts of all nodes; None if one of them is not fixed, or without any node."""
    found = [texts_of(program, module, node, depth + 1) for node in nodes]
    fixed = [texts for texts in found if texts is not None]
    return frozenset[str]().union(*fixed) if len(fixed) == len(found) > 0 else None


def _texts_named(
    program: Program, module: Module, node: ast.Name | ast.Attribute, depth: int
) -> frozenset[str] | None:
    if isinstance(node, ast.Name):
        function = module.function_of(node)
        if function is not None and (values := list(assigned(function, node.id))):
            return _joined(program, module, values, depth)
        if function is not None and node.id in parameters_of(function):
            return None
        if (found := _at_top(program, module, node.id, depth)) is not None:
            return found
    home, _, name = (module.dotted(node) or "").rpartition(".")
    return _at_top(program, program.modules[home], name, depth) if home in program.modules else None


def _at_top(program: Program, module: Module, name: str, depth: int) -> frozenset[str] | None:
    statements = (each for each in module.tree.body if not isinstance(each, FunctionNode | ast.ClassDef))
    values = [value for statement in statements for value in assigned(statement, name)]
    return _joined(program, module, values, depth)
