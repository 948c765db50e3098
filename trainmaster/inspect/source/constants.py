"""Texts that an expression can be, where the source fixes them."""

import ast
from collections.abc import Iterator

from trainmaster.inspect.source.module import FunctionNode, Module
from trainmaster.inspect.source.program import Program

MAX_DEPTH = 6


def texts_of(
    program: Program, module: Module, node: ast.expr | None, depth: int = 0
) -> frozenset[str] | None:
    """Every text that `node` can be; None where the source does not fix it."""
    found: frozenset[str] | None = None
    match node if depth <= MAX_DEPTH else None:
        case ast.Constant(value=str(text)):
            found = frozenset({text})
        case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
            found = _joined(program, module, elements, depth)
        case ast.IfExp(body=body, orelse=orelse):
            found = _joined(program, module, [body, orelse], depth)
        case ast.Name(id=name) as named:
            found = _named(program, module, named, name, depth)
        case ast.Attribute(value=value, attr=attribute):
            home = program.modules.get(module.dotted(value) or "")
            found = None if home is None else _at_top(program, home, attribute, depth)
        case _:
            pass
    return found


def _joined(program: Program, module: Module, nodes: list[ast.expr], depth: int) -> frozenset[str] | None:
    found = [texts_of(program, module, node, depth + 1) for node in nodes]
    if any(texts is None for texts in found):
        return None
    return frozenset(text for texts in found if texts is not None for text in texts)


def _named(program: Program, module: Module, node: ast.expr, name: str, depth: int) -> frozenset[str] | None:
    function = module.function_of(node)
    if function is not None:
        if values := list(_values(function, name)):
            return _joined(program, module, values, depth)
        if any(name == argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)):
            return None
    if (found := _at_top(program, module, name, depth)) is not None:
        return found
    home, _, last = module.names.get(name, "").rpartition(".")
    imported = program.modules.get(home)
    return None if imported is None else _at_top(program, imported, last, depth + 1)


def _at_top(program: Program, module: Module, name: str, depth: int) -> frozenset[str] | None:
    values = [value for statement in module.tree.body for value in _bound(statement, name)]
    return _joined(program, module, values, depth) if values else None


def _values(function: FunctionNode, name: str) -> Iterator[ast.expr]:
    for node in ast.walk(function):
        yield from _bound(node, name)


def _bound(node: ast.AST, name: str) -> Iterator[ast.expr]:
    match node:
        case ast.Assign(targets=targets, value=value):
            if any(isinstance(target, ast.Name) and target.id == name for target in targets):
                yield value
        case ast.AnnAssign(target=ast.Name(id=bound), value=ast.expr() as value) if bound == name:
            yield value
        case _:
            return
