"""The calls that each entry point can reach, from the functions' source: names are followed, nothing is run.

More than really happens is found, never less: a name that is mentioned counts as called, and every branch as taken.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ORCHESTRATOR = ROOT / "trainmaster" / "orchestrator"
ADAPTERS = ORCHESTRATOR / "adapters"
STORES = ORCHESTRATOR / "stores"
VERBS = ("read", "describe", "write", "copy", "delete", "listing")
"""Of `trainmaster.orchestrator.ports.objects.Objects`."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call of a service: `name` as trainmaster/deploy/permissions.yaml has it, and for objects the bucket's role."""

    name: str
    bucket: str | None = None


@dataclass(kw_only=True)
class _Body:
    """What one top-level function, class or constant mentions."""

    names: set[tuple[str, str]] = field(default_factory=set)
    ports: set[tuple[str, str]] = field(default_factory=set)


@cache
def ports() -> dict[str, tuple[str, str | None]]:
    """Each port of Services that is an adapter: its class and the role of its bucket."""
    found: dict[str, tuple[str, str | None]] = {}
    for node in ast.walk(ast.parse((ORCHESTRATOR / "flows" / "services.py").read_text())):
        match node:
            case ast.Assign(
                targets=[ast.Attribute(value=ast.Name(id="self"), attr=port)],
                value=ast.Call(func=ast.Name(id=adapter), args=args),
            ) if adapter in _stores():
                found[port] = (adapter, _bucket(port, args))
    return {
        **found,
        "jobs": ("VertexJobs", None),
        "job_logs": ("CloudJobLogs", None),
        "model_registry": ("VertexModels", None),
        "machine_metrics": ("CloudMachineMetrics", None),
        "notices": ("PubsubNotices", None),
    }


def _bucket(port: str, args: list[ast.expr]) -> str | None:
    """The role of the bucket that an adapter is given; those that are given none read what rules watch, or models."""
    for argument in args:
        match argument:
            case ast.Attribute(value=ast.Name(id="buckets"), attr=name):
                return name
    return "data" if port == "watched" else "models"


@cache
def adapter_calls(adapter: str, method: str) -> frozenset[str]:
    """Calls that a method of an adapter makes, its own methods followed."""
    found: set[str] = set()
    seen: set[str] = set()
    waiting = [method]
    methods = _methods(adapter)
    while waiting:
        name = waiting.pop()
        if name in seen or name not in methods:
            continue
        seen.add(name)
        for node in ast.walk(methods[name]):
            if isinstance(node, ast.Attribute):
                waiting.append(node.attr)
                if adapter in _stores() and node.attr in VERBS and _of_objects(node.value):
                    found.add(f"GcsObjects.{node.attr}")
    if adapter not in _stores():
        found.add(f"{adapter}.{method}")
    return frozenset(found)


def _of_objects(value: ast.expr) -> bool:
    return isinstance(value, ast.Attribute) and value.attr == "objects"


@cache
def _methods(adapter: str) -> dict[str, ast.FunctionDef]:
    """Its own methods, and for a store those that every store has."""
    base = _stores()["Store"] if adapter in _stores() else []
    body = _stores().get(adapter) or _classes(ADAPTERS)[adapter]
    return {each.name: each for each in (*base, *body) if isinstance(each, ast.FunctionDef)}


@cache
def _stores() -> dict[str, list[ast.stmt]]:
    return _classes(STORES)


def _classes(folder: Path) -> dict[str, list[ast.stmt]]:
    trees = (ast.parse(path.read_text()) for path in sorted(folder.glob("*.py")))
    return {node.name: node.body for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)}


@cache
def bodies() -> dict[tuple[str, str], _Body]:
    """Everything that main.py and the flow define, by module and name."""
    return {
        (module, name): _body(node, module)
        for module, path in _modules().items()
        for node in ast.parse(path.read_text()).body
        for name in _defined(node)
    }


@cache
def _modules() -> dict[str, Path]:
    paths = [ROOT / "functions" / "main.py", *sorted((ORCHESTRATOR / "flows").rglob("*.py"))]
    return {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in paths}


def _defined(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Assign(targets=targets):
            yield from (target.id for target in targets if isinstance(target, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name


@cache
def _imported(module: str) -> dict[str, tuple[str, str]]:
    return {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(ast.parse(_modules()[module].read_text()))
        if isinstance(node, ast.ImportFrom) and node.module in _modules()
        for alias in node.names
    }


def _body(node: ast.stmt, module: str) -> _Body:
    body = _Body()
    for inner in ast.walk(node):
        match inner:
            case ast.Attribute(value=ast.Attribute(attr=port) | ast.Name(id=port), attr=verb) if (
                port in ports()
            ):
                body.ports.add((port, verb))
            case ast.Attribute(attr="arrival_log"):
                body.ports.add(("arrival_log", "append"))
            case ast.Name(id=name):
                body.names.add(_imported(module).get(name, (module, name)))
    return body


def calls_of(entry_point: str) -> frozenset[Call]:
    """Every call that the entry point can reach."""
    found: set[Call] = set()
    seen: set[tuple[str, str]] = set()
    waiting = [("functions.main", entry_point)]
    while waiting:
        place = waiting.pop()
        if place in seen or place not in bodies():
            continue
        seen.add(place)
        body = bodies()[place]
        waiting.extend(body.names)
        found |= {call for port, verb in body.ports for call in _port_calls(port, verb)}
    return frozenset(found)


def _port_calls(port: str, verb: str) -> Iterator[Call]:
    if port == "arrival_log":  # no port of the flow: what an event brings is kept before any flow begins
        yield Call(name="ArrivalLog.create", bucket="ledger")
        return
    adapter, bucket = ports()[port]
    for name in adapter_calls(adapter, verb):
        yield Call(name=name, bucket=bucket)
        if name == "GcsObjects.copy":  # from where trainers write
            yield Call(name="GcsObjects.describe", bucket="models")
