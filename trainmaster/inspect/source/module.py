"""One parsed file, and the meaning of the names in it."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from trainmaster.inspect.finding import Location

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, kw_only=True, eq=False)
class Module:
    """`name` is dotted, `shown` the path as findings name it."""

    name: str
    path: Path
    shown: str
    tree: ast.Module
    is_package: bool = False
    parents: Mapping[ast.AST, ast.AST] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        parents = {child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)}
        object.__setattr__(self, "parents", parents)

    @property
    def package(self) -> str:
        """The package that relative imports start from."""
        return self.name if self.is_package else self.name.rpartition(".")[0]

    @cached_property
    def names(self) -> Mapping[str, str]:
        """The dotted name behind each imported or defined name, including imports inside functions."""
        found: dict[str, str] = {}
        for statement in self.tree.body:
            if isinstance(statement, FunctionNode | ast.ClassDef):
                found[statement.name] = f"{self.name}.{statement.name}"
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    first = alias.name.partition(".")[0]
                    found[alias.asname or first] = alias.name if alias.asname else first
            elif isinstance(node, ast.ImportFrom):
                origin = self.origin(node)
                found |= {alias.asname or alias.name: f"{origin}.{alias.name}" for alias in node.names}
        for statement in self.tree.body:  # keras = tf.keras
            if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Attribute):
                name = _dotted(statement.value, found)
                if name is not None:
                    found |= {target.id: name for target in statement.targets if isinstance(target, ast.Name)}
        return found

    def origin(self, node: ast.ImportFrom) -> str:
        """The absolute name of the module that `node` imports from."""
        if not node.level:
            return node.module or ""
        parts = self.package.split(".")
        base = parts[: len(parts) - (node.level - 1)]
        return ".".join([*base, *([node.module] if node.module else [])])

    def imported_by(self, node: ast.AST) -> list[str]:
        """What an import statement may import, absolute: the modules it names, and of one also the names from it."""
        match node:
            case ast.Import(names=names):
                return [alias.name for alias in names]
            case ast.ImportFrom(names=names):
                origin = self.origin(node)
                # Without a package, as in a script, a relative import has no origin.
                return [origin, *(f"{origin}.{alias.name}".lstrip(".") for alias in names)]
            case _:
                return []

    def dotted(self, node: ast.AST) -> str | None:
        """`tensorflow.distribute.MultiWorkerMirroredStrategy` for `tf.distribute.MultiWorkerMirroredStrategy`.

        None: no import or definition of this module explains the expression's name.
        """
        return _dotted(node, self.names)

    def place(self, node: ast.AST) -> Location:
        return Location(path=self.shown, line=getattr(node, "lineno", None))

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes that hold `node`, the nearest first."""
        while (parent := self.parents.get(node)) is not None:
            yield parent
            node = parent

    def function_of(self, node: ast.AST) -> FunctionNode | None:
        """The function that `node` is in; None: it is at the module's top."""
        return next((parent for parent in self.above(node) if isinstance(parent, FunctionNode)), None)


def assigned(scope: ast.AST, name: str) -> Iterator[ast.expr]:
    """The values that `name` is given within `scope`, and contexts that are entered under that name."""
    for node in ast.walk(scope):
        match node:
            case ast.Assign(targets=targets, value=value) if any(_binds(target, name) for target in targets):
                yield value
            case (
                ast.AnnAssign(target=ast.Name(id=bound), value=ast.expr() as value)
                | ast.AugAssign(target=ast.Name(id=bound), value=value)
                | ast.withitem(context_expr=value, optional_vars=ast.Name(id=bound))
                | ast.NamedExpr(target=ast.Name(id=bound), value=value)
            ) if bound == name:
                yield value
            case _:
                pass


def _binds(target: ast.expr, name: str) -> bool:
    if isinstance(target, ast.Tuple | ast.List):
        return any(_binds(element, name) for element in target.elts)
    return isinstance(target, ast.Name) and target.id == name


def words(node: ast.AST) -> Iterator[str]:
    """The text constants within `node`."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            yield inner.value


def last_name(node: ast.AST) -> str:
    """`save` for `self.model.save`; empty if it is not a name."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((given.value for given in call.keywords if given.arg == name), None)


def argument(call: ast.Call, names: Sequence[str], position: int) -> ast.expr | None:
    """What the call gives for a parameter: by one of its names, else at its position."""
    by_name = next((found for name in names if (found := keyword(call, name)) is not None), None)
    return by_name or (call.args[position] if len(call.args) > position else None)


def _dotted(node: ast.AST, names: Mapping[str, str]) -> str | None:
    match node:
        case ast.Name(id=name):
            return names.get(name)
        case ast.Attribute(value=value, attr=attribute):
            base = _dotted(value, names)
            return (
                None
                if base is None
                else f"{base}.{attribute}".replace("tensorflow.compat.v2.", "tensorflow.")
            )
        case _:
            return None
