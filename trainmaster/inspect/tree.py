"""The program in a directory or file, found by following its imports."""

import ast
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from trainmaster.client.terminal import relative_to_cwd
from trainmaster.inspect.finding import UnusableProgram, nearest
from trainmaster.inspect.program import Module, ProgramSource, called_name

USUAL_ENTRIES = ("trainer.task", "trainer.train", "trainer.__main__", "task", "train", "main", "__main__")
"""Where AI Platform Training's guides and common use put the program, the likeliest first."""

KNOWN = sys.stdlib_module_names | {
    "absl", "apache_beam", "click", "cloudml_hypertune", "cv2", "datasets", "fire", "fsspec", "gcsfs", "google", "grpc",
    "h5py", "horovod", "hypertune", "jax", "joblib", "jsonschema", "keras", "keras_cv", "keras_tuner", "lightgbm",
    "lightning", "matplotlib", "mxnet", "numpy", "optax", "flax", "pandas", "PIL", "psutil", "pyarrow", "pydantic",
    "pytorch_lightning", "pyspark", "requests", "rich", "scipy", "seaborn", "six", "skimage", "sklearn", "tensorboard",
    "tensorflow", "tensorflow_addons", "tensorflow_datasets", "tensorflow_hub", "tensorflow_io", "tensorflow_text",
    "tensorflow_transform", "tf_keras", "torch", "torchaudio", "torchvision", "tqdm", "transformers", "typer",
    "typing_extensions", "xgboost", "yaml",
}  # fmt: skip
"""Packages that do not save a model to AIP_MODEL_DIR or report a metric unless the program does."""

LEFT_OUT = {"build", "dist", "node_modules", "site-packages", "tests", "test", "__pycache__"}


@dataclass(frozen=True, kw_only=True)
class Tree:
    """`root` is the import root; `given` is the directory or file that the user named.

    `beside` is the directory of a program that is run as a script: Python searches it first.
    """

    root: Path
    given: Path
    beside: Path | None = None

    @property
    def search(self) -> tuple[Path, ...]:
        scripts = [] if self.beside is None else [self.beside]
        return tuple(dict.fromkeys([*scripts, self.root, self.root / "src"]))

    def file_of(self, name: str) -> Path | None:
        """The file of a module, by its dotted name."""
        relative = Path(*name.split("."))
        for place in self.search:
            for path in (place / relative / "__init__.py", place / relative.with_suffix(".py")):
                if path.is_file():
                    return path
        return None

    def name_of(self, path: Path) -> str:
        parts = path.relative_to(self.root).with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)

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
        UnusableProgram: there is nothing, or nothing that Python could run.
    """
    path = given.absolute()
    if not path.exists():
        beside = [str(other.name) for other in path.parent.glob("*")] if path.parent.is_dir() else []
        raise UnusableProgram(
            f"{str(given)!r} does not exist; name a source tree or a Python file.{nearest(path.name, beside)}"
        )
    if path.is_file() and path.suffix != ".py":
        is_request = path.suffix in {".yaml", ".yml", ".json"}
        request = f" A request is named with --request {given}." if is_request else ""
        raise UnusableProgram(
            f"{str(given)!r} is not a Python file; name a source tree or a file that ends in .py.{request}"
        )
    root = path if path.is_dir() else path.parent
    while (root / "__init__.py").is_file():
        root = root.parent
    tree = Tree(root=root, given=path)
    if path.is_dir() and not tree.files():
        raise UnusableProgram(
            f"{str(given)!r} contains no Python file; name the directory that contains the program."
        )
    return tree


def read_source(tree: Tree, module: str | None) -> ProgramSource:
    """The program that `module` starts; None: the usual module, else whatever has a `__main__` part, else every file.

    Raises:
        UnusableProgram: there is no such module in the tree.
    """
    if module is not None and tree.file_of(module) is None:
        known = [tree.name_of(path) for path in tree.files()]
        raise UnusableProgram(
            f"There is no module {module!r} in {tree.root}; the tree has {', '.join(known[:12])}."
            f"{nearest(module, known)} Name the module to run with --module."
        )
    entries = _entries(tree, module)
    if len(entries) == 1 and not (entries[0].parent / "__init__.py").is_file():
        tree = replace(tree, beside=entries[0].parent)
    waiting = [(module or tree.name_of(path), path) for path in entries]
    read: dict[Path, Module] = {}
    unparsed: dict[Path, SyntaxError] = {}
    unread: set[str] = set()
    while waiting:
        name, path = waiting.pop()
        if path in read or path in unparsed:
            continue
        try:
            parsed = ast.parse(path.read_bytes(), filename=relative_to_cwd(path))
        except SyntaxError as error:
            unparsed[path] = error
            continue
        read[path] = Module(name=name, path=path, tree=parsed)
        names = _needed_modules(read[path])
        unread |= {name for name in names if not _is_known(tree, name)}
        parts = sorted({part for name in names for part in _with_packages(name)})
        waiting += [(part, file) for part in parts if (file := tree.file_of(part)) is not None]
    return ProgramSource(
        entries=tuple(read[path] for path in entries if path in read),
        modules=tuple(read.values()),
        unparsed=tuple((relative_to_cwd(path), error) for path, error in unparsed.items()),
        unread=tuple(sorted(unread)),
    )


def _entries(tree: Tree, module: str | None) -> list[Path]:
    if module is not None:
        started = f"{module}.__main__" if tree.file_of(f"{module}.__main__") else module
        file = tree.file_of(started)
        return [file] if file is not None else []
    if tree.given.is_file():
        return [tree.given]
    for name in USUAL_ENTRIES:
        file = tree.file_of(name)
        if file is not None and file.is_relative_to(tree.given):
            return [file]
    files = tree.files()
    return [path for path in files if "__main__" in path.read_text(errors="replace")] or files


def _needed_modules(module: Module) -> set[str]:
    names = {module.package, *module.imported_names}
    if not {"import_module", "__import__"}.isdisjoint(map(called_name, module.nodes)):
        # Which one is known at run time only: any module beside this one may be meant.
        names |= {f"{module.package}.{path.stem}".lstrip(".") for path in module.path.parent.glob("*.py")}
    return names - {""}


def _is_known(tree: Tree, name: str) -> bool:
    """Whether it is read here, or is a library that leaves a program's own duties to the program."""
    first = name.partition(".")[0]
    is_folder = any((place / first).is_dir() for place in tree.search)
    return is_folder or first in KNOWN or tree.file_of(first) is not None


def _with_packages(name: str) -> list[str]:
    """`a`, `a.b`, `a.b.c`: importing the last imports them all."""
    parts = name.split(".")
    return [".".join(parts[: count + 1]) for count in range(len(parts))]
