"""From a directory or file to the program in it."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trainer.doctor.source.module import Module, last_name
from trainer.doctor.source.program import Program
from trainer.faults import Unusable, nearest

USUAL_ENTRIES = ("trainer.task", "trainer.train", "trainer.__main__", "task", "train", "main", "__main__")
"""Where AI Platform Training's guides and common use put the program, the likeliest first."""

LEFT_OUT = {"build", "dist", "node_modules", "site-packages", "tests", "test", "__pycache__"}


@dataclass(frozen=True, kw_only=True)
class Tree:
    """`root` is where modules are looked for; `given` is what the user named: a directory or a file."""

    root: Path
    given: Path

    @property
    def search(self) -> tuple[Path, ...]:
        """The script's own directory is on the path too, as Python puts it there."""
        places = [self.root, self.root / "src"]
        if self.given.is_file():
            places.insert(0, self.given.parent)
        return tuple(dict.fromkeys(places))

    def file_of(self, name: str) -> Path | None:
        """The file of a module, by its dotted name."""
        relative = Path(*name.split("."))
        for place in self.search:
            for path in (place / relative / "__init__.py", place / relative.with_suffix(".py")):
                if path.is_file():
                    return path
        return None

    def name_of(self, path: Path) -> str:
        for place in sorted(self.search, key=lambda place: -len(place.parts)):
            if path.is_relative_to(place):
                parts = path.relative_to(place).with_suffix("").parts
                return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)
        return path.stem

    def files(self) -> list[Path]:
        below = self.given if self.given.is_dir() else self.given.parent
        return sorted(
            path
            for path in below.rglob("*.py")
            if not any(part in LEFT_OUT or part.startswith(".") for part in path.relative_to(below).parts)
        )


def tree_at(given: Path) -> Tree:
    """The tree of a directory or file; a package's root is what holds the package.

    Raises:
        Unusable: there is nothing, or nothing that Python could run.
    """
    path = given.absolute()
    if not path.exists():
        beside = [str(other.name) for other in path.parent.glob("*")] if path.parent.is_dir() else []
        raise Unusable(
            f"{str(given)!r} does not exist; name a source tree or a Python file.{nearest(path.name, beside)}"
        )
    if path.is_file() and path.suffix != ".py":
        raise Unusable(f"{str(given)!r} is no Python file; name a source tree or a file that ends in .py.")
    root = path if path.is_dir() else path.parent
    while (root / "__init__.py").is_file():
        root = root.parent
    tree = Tree(root=root, given=path)
    if path.is_dir() and not tree.files():
        raise Unusable(f"{str(given)!r} has no Python file; name the directory that holds the program.")
    return tree


def program_in(tree: Tree, module: str | None) -> Program:
    """The program that `module` starts; None: the usual module, else whatever has a `__main__` part, else every file.

    Raises:
        Unusable: there is no such module in the tree.
    """
    if module is not None and tree.file_of(module) is None:
        known = [tree.name_of(path) for path in tree.files()]
        raise Unusable(
            f"There is no module {module!r} in {tree.root}; the tree has {', '.join(known[:12])}."
            f"{nearest(module, known)} Name the one that is run with --module."
        )
    return _Reader(tree).program(_entries(tree, module))


def _entries(tree: Tree, module: str | None) -> list[Path]:
    if module is not None:
        started = f"{module}.__main__" if tree.file_of(f"{module}.__main__") else module
        found = tree.file_of(started)
        return [found] if found is not None else []
    if tree.given.is_file():
        return [tree.given]
    for name in USUAL_ENTRIES:
        found = tree.file_of(name)
        if found is not None and found.is_relative_to(tree.given):
            return [found]
    files = tree.files()
    return [path for path in files if "__main__" in path.read_text(errors="replace")] or files


@dataclass(kw_only=False)
class _Reader:
    tree: Tree
    modules: dict[str, Module] = field(default_factory=dict)
    unparsed: list[tuple[str, SyntaxError]] = field(default_factory=list)

    def program(self, entries: Sequence[Path]) -> Program:
        waiting = [*entries]
        read: dict[Path, Module | None] = {}
        while waiting:
            path = waiting.pop()
            if path not in read:
                read[path] = self._read(path)
                if (module := read[path]) is not None:
                    self.modules[module.name] = module
                    waiting += self._imported(module)
        return Program(
            entries=tuple(module for path in entries if (module := read[path]) is not None),
            modules=self.modules,
            unparsed=tuple(self.unparsed),
        )

    def _read(self, path: Path) -> Module | None:
        shown = _shown(path)
        try:
            parsed = ast.parse(path.read_bytes(), filename=shown)
        except SyntaxError as error:
            self.unparsed.append((shown, error))
            return None
        is_package = path.name == "__init__.py"
        return Module(
            name=self.tree.name_of(path), path=path, shown=shown, tree=parsed, is_package=is_package
        )

    def _imported(self, module: Module) -> list[Path]:
        names = {module.name.rpartition(".")[0]}
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                origin = module.origin(node)
                names |= {origin, *(f"{origin}.{alias.name}" for alias in node.names)}
            elif isinstance(node, ast.Call) and last_name(node.func) in {"import_module", "__import__"}:
                # Which one is known at run time only: any module beside this one may be meant.
                names |= {self.tree.name_of(path) for path in module.path.parent.glob("*.py")}
        return [
            path
            for name in sorted(names)
            if name
            for part in _with_packages(name)
            if (path := self.tree.file_of(part))
        ]


def _with_packages(name: str) -> list[str]:
    """`a`, `a.b`, `a.b.c`: importing the last imports them all."""
    parts = name.split(".")
    return [".".join(parts[: count + 1]) for count in range(len(parts))]


def _shown(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
