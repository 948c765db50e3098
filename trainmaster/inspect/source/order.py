"""The order in which a program runs its imports, calls and assignments, as far as its source shows.

Follows imports and calls into the program's own modules, each function once. What lies behind a
condition, in a loop or in a function of uncertain identity is walked too, and marked.
"""

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field

from trainmaster.inspect.source.module import Module, last_name
from trainmaster.inspect.source.program import Function, Program

MAX_DEPTH = 40  # of calls within calls; the interpreter's own limit stays far away
LEAVES = {"exit", "_exit", "abort"}
PERHAPS = (ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.match_case)
"""What has blocks that may run or not."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One import, call or assignment. `is_certain`: every run of the program comes past it."""

    module: Module
    node: ast.Import | ast.ImportFrom | ast.Call | ast.Assign | ast.AugAssign
    is_certain: bool


def steps_of(program: Program) -> list[Step]:
    """All steps from the entry points on; the entries' own `__main__` parts are run."""
    walk = _Walk(program)
    for entry in program.entries:
        walk.import_module(entry, is_certain=len(program.entries) == 1)
    return walk.steps


def leaves(block: Sequence[ast.stmt]) -> bool:
    """Whether this block ends the function, the loop's round or the process."""
    match block[-1] if block else None:
        case ast.Return() | ast.Raise() | ast.Continue() | ast.Break():
            return True
        case ast.Expr(value=ast.Call(func=function)):
            return last_name(function) in LEAVES
        case _:
            return False


@dataclass(kw_only=False)
class _Walk:
    program: Program
    steps: list[Step] = field(default_factory=list)
    _imported: set[str] = field(default_factory=set)
    _entered: dict[Function, bool] = field(default_factory=dict)
    _depth: int = 0

    def import_module(self, module: Module, *, is_certain: bool) -> None:
        package = self.program.modules.get(module.name.rpartition(".")[0])
        if package is not None and package is not module and package.is_package:
            self.import_module(package, is_certain=is_certain)
        if module.name not in self._imported:
            self._imported.add(module.name)
            self._block(module, module.tree.body, is_certain)

    def _block(self, module: Module, block: Sequence[ast.stmt], is_certain: bool) -> None:
        for statement in block:
            self._statement(module, statement, is_certain)
            if isinstance(statement, ast.Return | ast.Raise):
                return

    def _statement(self, module: Module, statement: ast.stmt, is_certain: bool) -> None:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                for decorator in statement.decorator_list:
                    self._node(module, decorator, is_certain)
            case ast.Import() | ast.ImportFrom():
                self._import(module, statement, is_certain)
            case ast.If():
                self._if(module, statement, is_certain)
            case _:
                self._parts(module, statement, is_certain)
                if isinstance(statement, ast.Assign | ast.AugAssign):
                    self.steps.append(Step(module=module, node=statement, is_certain=is_certain))

    def _parts(self, module: Module, node: ast.AST, is_certain: bool) -> None:
        """What the node consists of, in the order in which it runs; a block of PERHAPS may run or not."""
        for _, value in ast.iter_fields(node):
            match value:
                case [ast.stmt(), *_] as block:
                    self._block(module, block, is_certain and not isinstance(node, PERHAPS))
                case list():
                    for part in value:
                        if isinstance(part, ast.AST):
                            self._node(module, part, is_certain)
                case ast.AST():
                    self._node(module, value, is_certain)

    def _if(self, module: Module, branch: ast.If, is_certain: bool) -> None:
        self._node(module, branch.test, is_certain)
        names = {last_name(node) for node in ast.walk(branch.test)}
        if "TYPE_CHECKING" in names:
            self._block(module, branch.orelse, is_certain)
        elif "__name__" in names:
            if module in self.program.entries:
                self._block(module, branch.body, is_certain)
        else:
            for block in (branch.body, branch.orelse):
                self._block(module, block, is_certain=False)

    def _import(self, module: Module, node: ast.Import | ast.ImportFrom, is_certain: bool) -> None:
        self.steps.append(Step(module=module, node=node, is_certain=is_certain))
        for name in module.imported_by(node):
            if (found := self.program.modules.get(name)) is not None:
                self.import_module(found, is_certain=is_certain)

    def _node(self, module: Module, node: ast.AST, is_certain: bool) -> None:
        """The calls within an expression or clause, arguments before the call that takes them."""
        match node:
            case ast.Lambda():
                pass
            case ast.IfExp(test=test, body=body, orelse=orelse):
                self._node(module, test, is_certain)
                for branch in (body, orelse):
                    self._node(module, branch, is_certain=False)
            case ast.BoolOp(values=[first, *others]):
                self._node(module, first, is_certain)
                for other in others:
                    self._node(module, other, is_certain=False)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                self._parts(module, node, is_certain=False)
            case _:
                self._parts(module, node, is_certain)
                if isinstance(node, ast.Call):
                    self.steps.append(Step(module=module, node=node, is_certain=is_certain))
                    self._enter(module, node, is_certain)

    def _enter(self, module: Module, call: ast.Call, is_certain: bool) -> None:
        target = self.program.called(module, call)
        if target is None or self._depth >= MAX_DEPTH:
            return
        function, is_known = target
        is_certain = is_certain and is_known
        if self._entered.get(function, False) or (function in self._entered and not is_certain):
            return
        self._entered[function] = is_certain
        self._depth += 1
        self._block(function.module, function.node.body, is_certain)
        self._depth -= 1
