"""Where a path comes from: is it one directory for all replicas, or does each have its own?"""

import ast
from enum import Enum

from trainmaster.inspect.source.guards import ROLE_NAME, guards_of, tells_role
from trainmaster.inspect.source.module import FunctionNode, Module, keyword, last_name
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
            found = Origin.OWN if tells_role(program, module, test) else _mixed(origins)
        case ast.Subscript(value=value) if module.dotted(value) in ENVIRONMENT:
            found = Origin.OWN if tells_role(program, module, node) else Origin.SAME
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
    if tells_role(program, module, call) or last_name(call.func) in OWN_MAKERS:
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
        values = _assigned(scope, name.id)
        if any(
            tells_role(program, module, guard.test) for value in values for guard in guards_of(module, value)
        ):
            return Origin.OWN
        if values:
            return _mixed([origin_of(program, module, value, depth + 1) for value in values])
        if isinstance(scope, FunctionNode) and name.id in _parameters(scope):
            return _of_parameter(program, module, scope, name, depth)
    return Origin.UNKNOWN


def _assigned(scope: ast.AST, name: str) -> list[ast.expr]:
    """The values that `name` is given within `scope`, and contexts that are entered under that name."""
    found: list[ast.expr] = []
    for node in ast.walk(scope):
        match node:
            case ast.Assign(targets=targets, value=value) if any(_binds(target, name) for target in targets):
                found.append(value)
            case ast.AnnAssign(target=ast.Name(id=bound), value=ast.expr() as value) if bound == name:
                found.append(value)
            case ast.AugAssign(target=ast.Name(id=bound), value=value) if bound == name:
                found.append(value)
            case ast.withitem(context_expr=value, optional_vars=ast.Name(id=bound)) if bound == name:
                found.append(value)
            case ast.NamedExpr(target=ast.Name(id=bound), value=value) if bound == name:
                found.append(value)
    return found


def _binds(target: ast.expr, name: str) -> bool:
    if isinstance(target, ast.Tuple | ast.List):
        return any(_binds(element, name) for element in target.elts)
    return isinstance(target, ast.Name) and target.id == name


def _parameters(function: FunctionNode) -> list[str]:
    arguments = function.args
    return [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def _of_parameter(
    program: Program, module: Module, scope: FunctionNode, name: ast.Name, depth: int
) -> Origin:
    """What the callers give for it; without a caller that is found nothing is known."""
    function = program.function_around(module, name)
    if function is None or function.node is not scope:
        return Origin.UNKNOWN
    origins = []
    for site, call in program.call_sites(function):
        given = _given(function, call, name.id)
        origins.append(Origin.UNKNOWN if given is None else origin_of(program, site, given, depth + 1))
    return _mixed(origins) if origins else Origin.UNKNOWN


def _given(function: Function, call: ast.Call, name: str) -> ast.expr | None:
    if (by_name := keyword(call, name)) is not None:
        return by_name
    positional = [each.arg for each in (*function.node.args.posonlyargs, *function.node.args.args)]
    if function.is_called_on_object:
        positional = positional[1:]
    if name in positional and positional.index(name) < len(call.args):
        return call.args[positional.index(name)]
    return None
