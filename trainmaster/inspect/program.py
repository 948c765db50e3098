"""A program's source, read with `ast` and never run: its modules, what they import, and the texts in them."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from trainmaster.client.terminal import relative_to_cwd
from trainmaster.inspect.finding import SourceLocation


@dataclass(frozen=True, kw_only=True, eq=False)
class Module:
    """`name` is dotted."""

    name: str
    path: Path
    tree: ast.Module

    @property
    def shown_path(self) -> str:
        """The path as findings name it."""
        return relative_to_cwd(self.path)

    @property
    def package(self) -> str:
        """The package that relative imports start from."""
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]

    @cached_property
    def nodes(self) -> Sequence[ast.AST]:
        return list(ast.walk(self.tree))

    @cached_property
    def imported_names(self) -> frozenset[str]:
        """What it may import, absolute, inside functions too: modules, and names from them."""
        names: set[str] = set()
        for node in self.nodes:
            match node:
                case ast.Import(names=aliases):
                    names |= {alias.name for alias in aliases}
                case ast.ImportFrom(module=module, names=aliases, level=level):
                    # Without a package, as in a script, a relative import has no origin.
                    parts = self.package.split(".")[: -(level - 1) or None] if level else []
                    origin = ".".join([*parts, *filter(None, [module])])
                    names |= {origin, *(f"{origin}.{alias.name}".lstrip(".") for alias in aliases)}
                case _:
                    pass
        return frozenset(names)

    def place(self, node: ast.AST) -> SourceLocation:
        return SourceLocation(path=self.shown_path, line=getattr(node, "lineno", None))


@dataclass(frozen=True, kw_only=True, eq=False)
class ProgramSource:
    """What an entry point can reach. `entries` are run as `__main__`; `unparsed` are files with syntax errors.

    `unread` are imported modules that are not in the tree and may do anything on the program's behalf: what
    is nowhere in the source may be in them.
    """

    entries: tuple[Module, ...]
    modules: tuple[Module, ...]
    unparsed: tuple[tuple[str, SyntaxError], ...] = ()
    unread: tuple[str, ...] = ()

    @property
    def gap(self) -> str:
        """Why something may exist although the source does not show it; empty if it shows all."""
        if self.unparsed:
            return f"{self.unparsed[0][0]} cannot be read"
        return f"{self.unread[0]} is imported but is not in the tree" if self.unread else ""

    @cached_property
    def imported_names(self) -> frozenset[str]:
        """What any of the modules may import."""
        return frozenset(name for module in self.modules for name in module.imported_names)

    @cached_property
    def strings(self) -> frozenset[str]:
        """Every text constant of the program; its docstrings too."""
        return frozenset(word for module in self.modules for word in iter_words(module.tree))

    def mention(self, text: str) -> SourceLocation | None:
        """A text constant that contains `text`; one that is nothing else comes first."""
        mentions = [
            (node.value != text, module.place(node))
            for module in self.modules
            for node in module.nodes
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and text in node.value
        ]
        return min(mentions, key=lambda mention: mention[0])[1] if mentions else None

    def calls(self) -> Iterator[tuple[Module, ast.Call, str]]:
        """The calls, with the last part of the name that is called."""
        for module in self.modules:
            calls = (node for node in module.nodes if isinstance(node, ast.Call))
            yield from ((module, call, called_name(call)) for call in calls)


def iter_words(node: ast.AST) -> Iterator[str]:
    """The text constants within `node`."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
            yield inner.value


def called_name(node: ast.AST) -> str:
    """`save` for the call `self.model.save(…)`; empty if it is not a call of a name."""
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name
        case _:
            return ""
