"""The tree stays one that a stranger can read: small folders, short functions, no import that runs in a circle."""

import ast
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("trainmaster", "trainstack", "trainer", "tools")
MODULES_MAX = 15
MEDIAN_LINES_MAX = 7
P90_LINES_MAX = 20
LINES_MAX = {
    "trainmaster/orchestrator": 29_660,
    "trainmaster/client": 13_055,
    "trainmaster/cli": 7_610,
    "trainmaster/web": 5_390,
    "trainmaster/inspect": 2_000,
    "trainmaster/deploy": 2_975,
    "trainstack": 29_945,
    "trainer": 7_200,
    "tools": 1_600,
    "tests": 93_435,
}
"""Of Python, by room, now; docs/decisions/044-two-wings-within-budgets.md has the budgets that they are to shrink to."""


@pytest.fixture(scope="module")
def imports() -> Mapping[str, set[str]]:
    """Each module of the product with the modules of the product that it imports, inside functions too."""
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    return {module: set(graph.find_modules_directly_imported_by(module)) for module in graph.modules}


def circles(arrows: Mapping[str, set[str]]) -> list[list[str]]:
    """Every group of two or more names that reach each other: Tarjan's strongly connected components."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(arrows.get(name, ())):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            group = [stack.pop()]
            while group[-1] != name:
                group.append(stack.pop())
            if len(group) > 1:
                found.append(sorted(group))

    for name in sorted(arrows):
        if name not in index:
            visit(name)
    return found


def test_no_modules_import_each_other_in_a_circle(imports: Mapping[str, set[str]]) -> None:
    assert circles(imports) == []


def test_no_folders_import_each_other_in_a_circle(imports: Mapping[str, set[str]]) -> None:
    """Of the folders beside each other in one folder, and of the modules beside them."""
    problems = []
    for folder in sorted({name.rpartition(".")[0] for name in imports if "." in name}):
        depth = folder.count(".") + 2
        arrows: defaultdict[str, set[str]] = defaultdict(set)
        for module, imported in imports.items():
            if not module.startswith(f"{folder}."):
                continue
            own = ".".join(module.split(".")[:depth])
            others = {
                ".".join(other.split(".")[:depth]) for other in imported if other.startswith(f"{folder}.")
            }
            arrows[own] |= others - {own}
        problems += circles(arrows)
    assert problems == []


def test_no_folder_has_more_modules_than_can_be_kept_in_mind() -> None:
    modules = Counter(
        path.parent
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if path.name != "__init__.py"
    )
    assert {str(folder): number for folder, number in modules.items() if number > MODULES_MAX} == {}


def rooms_of_contributing() -> dict[str, set[str]]:
    """Each room of CONTRIBUTING's table of layout, with the rooms that it may import."""
    rows = re.findall(
        r"^\| `([\w/]+)/` \|[^|]*\|([^|]*)\|$", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE
    )
    return {room: set(re.findall(r"`([\w/]+)/`", allowed)) for room, allowed in rows}


def test_the_table_of_layout_has_the_imports_of_every_room(imports: Mapping[str, set[str]]) -> None:
    packages = [
        *PACKAGES[1:],
        *(f"trainmaster.{path.parent.name}" for path in ROOT.glob("trainmaster/*/__init__.py")),
    ]
    rooms = {package.replace(".", "/") for package in packages}
    used: dict[str, set[str]] = {room: set() for room in rooms}
    for module, imported in imports.items():
        room = next((room for room in rooms if f"{module}.".startswith(f"{room.replace('/', '.')}.")), None)
        if room is not None:
            paths = {f"{other.replace('.', '/')}/" for other in imported}
            used[room] |= {
                other for other in rooms - {room} for path in paths if path.startswith(f"{other}/")
            }
    table = rooms_of_contributing()
    assert used == {room: table.get(room) for room in rooms}


@pytest.mark.parametrize("room", LINES_MAX)
def test_no_room_outgrows_its_budget(room: str) -> None:
    lines = sum(path.read_text().count("\n") for path in (ROOT / room).rglob("*.py"))
    assert lines <= LINES_MAX[room]


def functions() -> Iterator[int]:
    """The lines of every function of the product, its head and its docstring left out."""
    for package in (*PACKAGES, "functions"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
                    yield body[-1].end_lineno - body[0].lineno + 1 if body else 0  # type: ignore[operator]  # parsed text has lines


def test_functions_fit_a_screen() -> None:
    lines = sorted(functions())
    assert statistics.median(lines) <= MEDIAN_LINES_MAX
    assert lines[int(len(lines) * 0.9)] <= P90_LINES_MAX
