"""Which replicas reach a line: only the chief?"""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trainmaster.inspect.source.module import Module, last_name, words
from trainmaster.inspect.source.order import leaves
from trainmaster.inspect.source.program import Program

MAX_DEPTH = 6  # of nested callers, and of functions that a condition calls

ROLE_NAME = re.compile(
    r"chief|master|is_main|primary|task_type|task_id|task_index|worker|rank|replica(?!s)|\bindex\b"
)
"""Names by which programs call the replica's role. Too many rather than too few: a match silences an alarm."""
ROLE_WORDS = {"chief", "master", "worker", "TF_CONFIG", "CLUSTER_SPEC", "task", "RANK"}

CHIEF_NAME = re.compile(r"chief|is_main|is_master|is_primary|primary_replica")
NUMBER_NAME = re.compile(r"task_id|task_index|index|rank|worker_id")
CHIEF_WORDS = {"chief", "master"}


@dataclass(frozen=True, kw_only=True)
class Guard:
    """A condition on the way to a line; `holds` says which of its answers leads there."""

    test: ast.expr
    holds: bool


def guards_of(module: Module, node: ast.AST) -> Iterator[Guard]:
    """The conditions that hold where `node` is, within its function; early exits before it count."""
    inner = node
    for parent in module.above(node):
        if isinstance(parent, ast.If) and inner is not parent.test:
            yield Guard(test=parent.test, holds=inner in parent.body)
        for block in (getattr(parent, name, None) for name in ("body", "orelse", "finalbody")):
            if isinstance(block, list) and inner in block:
                yield from _exits_before(block, inner)
        if isinstance(parent, ast.FunctionDef | ast.AsyncFunctionDef):
            return
        inner = parent


def _exits_before(block: list[ast.stmt], node: ast.AST) -> Iterator[Guard]:
    for statement in block[: block.index(node)]:  # type: ignore[arg-type]  # the caller found it in there
        if isinstance(statement, ast.If) and leaves(statement.body) and not statement.orelse:
            yield Guard(test=statement.test, holds=False)


def is_chief_alone(program: Program, module: Module, node: ast.AST, depth: int = 0) -> bool:
    """Whether only a chief gets here, by a condition here or at every call of the enclosing function."""
    if any(chief_test(guard.test) is guard.holds for guard in guards_of(module, node)):
        return True
    sites = _calls_of_function_around(program, module, node, depth)
    return bool(sites) and all(is_chief_alone(program, site, call, depth + 1) for site, call in sites)


def knows_role(program: Program, module: Module, node: ast.AST, depth: int = 0) -> bool:
    """Whether any condition on the way here, in this function or in a caller, may be about the replica's role."""
    if any(checks_role(program, module, guard.test) for guard in guards_of(module, node)):
        return True
    sites = _calls_of_function_around(program, module, node, depth)
    return any(knows_role(program, site, call, depth + 1) for site, call in sites)


def _calls_of_function_around(
    program: Program, module: Module, node: ast.AST, depth: int
) -> Sequence[tuple[Module, ast.Call]]:
    function = program.function_around(module, node)
    return () if function is None or depth >= MAX_DEPTH else program.call_sites(function)


def checks_role(program: Program, module: Module, node: ast.AST, depth: int = 0) -> bool:
    """Whether the value of `node` may depend on which replica this is; looks into the functions it calls."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name | ast.Attribute | ast.arg) and ROLE_NAME.search(_name(inner)):
            return True
        if isinstance(inner, ast.Call) and depth < MAX_DEPTH:
            target = program.called(module, inner)
            if target is not None and checks_role(program, target[0].module, target[0].node, depth + 1):
                return True
    return any(word in ROLE_WORDS for word in words(node))


def chief_test(test: ast.expr) -> bool | None:
    """True: only a chief passes. False: a chief does not pass. None: it says neither."""
    answer: bool | None = None
    match test:
        case ast.Name() | ast.Attribute() | ast.Call():
            named = test.func if isinstance(test, ast.Call) else test
            answer = True if CHIEF_NAME.search(_name(named)) else None
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = chief_test(operand)
            answer = None if inner is None else not inner
        case ast.BoolOp(op=ast.And(), values=values):
            answer = True if any(chief_test(value) is True for value in values) else None
        case ast.BoolOp(op=ast.Or(), values=values):
            answers = {chief_test(value) for value in values if not _is_none_test(value)}
            answer = answers.pop() if len(answers) == 1 else None
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            answer = _comparison(left, op, right)
        case _:
            pass
    return answer


def _comparison(left: ast.expr, op: ast.cmpop, right: ast.expr) -> bool | None:
    said = {*words(left), *words(right)}
    named = f"{_name(left)} {_name(right)}"
    numbers = [side.value for side in (left, right) if isinstance(side, ast.Constant)]
    equal = isinstance(op, ast.Eq | ast.In | ast.Is)
    if said & CHIEF_WORDS and "worker" not in said:
        return equal
    if said == {"worker"} and isinstance(op, ast.Eq):
        return False
    if NUMBER_NAME.search(named) and numbers == [0]:
        return equal if isinstance(op, ast.Eq | ast.NotEq) else (False if isinstance(op, ast.Gt) else None)
    return None


def _is_none_test(test: ast.expr) -> bool:
    """`task_type is None`: a program alone is its own chief."""
    match test:
        case ast.Compare(ops=[ast.Is() | ast.Eq()], comparators=[ast.Constant(value=None)]):
            return True
        case _:
            return False


def _name(node: ast.AST) -> str:
    return node.arg if isinstance(node, ast.arg) else last_name(node)
