"""The modules that a program consists of, found by following its imports inside its tree."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from trainmaster.inspect.finding import Location
from trainmaster.inspect.source.module import FunctionNode, Module, last_name, words


@dataclass(frozen=True, kw_only=True, eq=False)
class Function:
    """A function or method; `owner` is its class."""

    module: Module
    node: FunctionNode
    owner: str | None = None

    @property
    def is_called_on_object(self) -> bool:
        """Whether the first parameter is the object itself."""
        kinds = {last_name(decorator) for decorator in self.node.decorator_list}
        return self.owner is not None and "staticmethod" not in kinds


@dataclass(frozen=True, kw_only=True, eq=False)
class Program:
    """What an entry point can reach. `entries` are run as `__main__`; `unparsed` are files with syntax errors.

    `unread` are imported modules that are not in the tree and may do anything on the program's behalf: what
    is nowhere in the source may be in them.
    """

    entries: tuple[Module, ...]
    modules: Mapping[str, Module]
    unparsed: tuple[tuple[str, SyntaxError], ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether the program surely lacks what its source lacks."""
        return not self.unread and not self.unparsed

    @cached_property
    def functions(self) -> Mapping[str, Function]:
        """By dotted name, methods as `module.Class.method`."""
        found: dict[str, Function] = {}
        for module in self.modules.values():
            classes = [node for node in module.tree.body if isinstance(node, ast.ClassDef)]
            bodies = [(None, module.tree.body), *((each.name, each.body) for each in classes)]
            for owner, body in bodies:
                home = module.name if owner is None else f"{module.name}.{owner}"
                for node in body:
                    if isinstance(node, FunctionNode):
                        found[f"{home}.{node.name}"] = Function(module=module, node=node, owner=owner)
        return found

    @cached_property
    def methods(self) -> Mapping[str, list[Function]]:
        """Methods by their bare name."""
        found: dict[str, list[Function]] = {}
        for function in self.functions.values():
            if function.owner is not None:
                found.setdefault(function.node.name, []).append(function)
        return found

    @cached_property
    def imported(self) -> frozenset[str]:
        """What the names of all modules stand for, dotted."""
        return frozenset(name for module in self.modules.values() for name in module.names.values())

    @cached_property
    def strings(self) -> frozenset[str]:
        """Every text constant of the program; its docstrings too."""
        return frozenset(word for module in self.modules.values() for word in words(module.tree))

    def mention(self, text: str) -> Location | None:
        """The text constants, except docstrings, that contain `text` as a word rather than in a sentence."""
        found = [
            (node.value != text, module.place(node))
            for module, node in self.nodes()
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and text in node.value
            if not isinstance(module.parents.get(node), ast.Expr)
        ]
        return min(found, key=lambda each: each[0])[1] if found else None

    def nodes(self) -> Iterator[tuple[Module, ast.AST]]:
        return ((module, node) for module in self.modules.values() for node in ast.walk(module.tree))

    def calls(self) -> Iterator[tuple[Module, ast.Call]]:
        return ((module, node) for module, node in self.nodes() if isinstance(node, ast.Call))

    def calls_of(self, names: Sequence[str]) -> list[tuple[Module, ast.Call]]:
        """Calls whose callee is one of these dotted names."""
        return [(module, call) for module, call in self.calls() if module.dotted(call.func) in names]

    def called(self, module: Module, call: ast.Call) -> tuple[Function, bool] | None:
        """The program's own function that `call` runs, and whether that is certain.

        A method on an object of unknown class is taken for the only method of that name.
        """
        name = module.dotted(call.func)
        if name is not None:
            found = self._defined(name)
            return None if found is None else (found, True)
        if not isinstance(call.func, ast.Attribute):
            return None
        if isinstance(call.func.value, ast.Name) and call.func.value.id == "self":
            owner = next((node.name for node in module.above(call) if isinstance(node, ast.ClassDef)), "")
            own = self.functions.get(f"{module.name}.{owner}.{call.func.attr}")
            if own is not None:
                return own, True
        named = self.methods.get(call.func.attr, [])
        return (named[0], False) if len(named) == 1 else None

    def call_sites(self, function: Function) -> list[tuple[Module, ast.Call]]:
        return self._sites.get(function, [])

    @cached_property
    def _sites(self) -> Mapping[Function, list[tuple[Module, ast.Call]]]:
        found: dict[Function, list[tuple[Module, ast.Call]]] = {}
        for module, call in self.calls():
            if (target := self.called(module, call)) is not None:
                found.setdefault(target[0], []).append((module, call))
        return found

    def function_around(self, module: Module, node: ast.AST) -> Function | None:
        """The function that `node` is in, if a module or a class defines it."""
        inner = module.function_of(node)
        return next((found for found in self.functions.values() if found.node is inner), None)

    def _defined(self, name: str, depth: int = 0) -> Function | None:
        """Follows names that a package re-exports, and a class to its `__init__`."""
        if (found := self.functions.get(name) or self.functions.get(f"{name}.__init__")) is not None:
            return found
        home, _, last = name.rpartition(".")
        if depth < len(self.modules) and home in self.modules:
            passed_on = self.modules[home].names.get(last)
            if passed_on is not None and passed_on != name:
                return self._defined(passed_on, depth + 1)
        return None
