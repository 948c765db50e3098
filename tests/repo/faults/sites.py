"""Every place of the product that makes a fault, found in the source: its line and the problems that it can state."""

import ast
import functools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
SOURCES = ROOT / "trainmaster" / "orchestrator"
MAKERS = {"Fault": None, "unreadable": 0, "unknown_key": None, "refuse": 1, "warn": 1, "_fault": 1}
"""The functions and methods that make a fault, each with the position of its `problem`; None: it is a keyword."""
ANYTHING = ".+"


@dataclass(frozen=True, kw_only=True)
class Site:
    """One call that makes a fault. `problems` are patterns of the texts that it can state."""

    path: str
    first_line: int
    last_line: int
    problems: tuple[str, ...]


@functools.cache
def sites() -> Sequence[Site]:
    """All of them, in the order of files and lines."""
    found: list[Site] = []
    for path in sorted(SOURCES.rglob("*.py")):
        tree = ast.parse(path.read_text())
        constants = _assigned(tree.body)
        for function in ast.walk(tree):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                found += _sites_of(function, constants, path.relative_to(ROOT).as_posix())
    unique = {
        (site.path, site.first_line): site for site in found
    }  # a function within a function is seen twice
    return sorted(unique.values(), key=lambda site: (site.path, site.first_line))


def schema_problems() -> dict[str, list[str]]:
    """The problems that schemas state themselves, by the schema's path."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "schemas").glob("*.schema.json")):
        texts = list(dict.fromkeys(_stated(json.loads(path.read_text()))))
        if texts:
            found[path.relative_to(ROOT).as_posix()] = texts
    return found


# Any: a JSON Schema.
def _stated(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(schema.get("problem"), str):
            yield schema["problem"]
        for part in schema.values():
            yield from _stated(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _stated(part)


def _sites_of(
    function: ast.FunctionDef | ast.AsyncFunctionDef, constants: Mapping[str, list[ast.expr]], path: str
) -> Iterator[Site]:
    parameters = {each.arg for each in (*function.args.args, *function.args.kwonlyargs)}
    known = {**constants, **_assigned(ast.walk(function))}
    for call in ast.walk(function):
        if not isinstance(call, ast.Call):
            continue
        problem = _problem_of(call)
        if problem is None or (isinstance(problem, ast.Name) and problem.id in parameters):
            continue  # a function that passes on its arguments is not a site: its callers are
        texts = tuple(dict.fromkeys(_texts(problem, known)))
        yield Site(
            path=path, first_line=call.lineno, last_line=call.end_lineno or call.lineno, problems=texts
        )


def _problem_of(call: ast.Call) -> ast.expr | None:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name not in MAKERS:
        return None
    position = MAKERS[name]
    if position is not None and len(call.args) > position:
        return call.args[position]
    return next((each.value for each in call.keywords if each.arg == "problem"), None)


def _assigned(nodes: Any) -> dict[str, list[ast.expr]]:  # Any: nodes of any kind
    found: dict[str, list[ast.expr]] = {}
    for node in nodes:
        for target in node.targets if isinstance(node, ast.Assign) else ():
            if isinstance(target, ast.Name):
                found.setdefault(target.id, []).append(node.value)
            elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                for name, value in zip(target.elts, node.value.elts, strict=False):
                    if isinstance(name, ast.Name):
                        found.setdefault(name.id, []).append(value)
    return found


def _texts(node: ast.expr, known: Mapping[str, list[ast.expr]], depth: int = 0) -> Iterator[str]:
    """A pattern for each text that the expression can be, as far as the source shows it."""
    match node:
        case ast.Constant(value=str(text)):
            yield re.escape(text)
        case ast.JoinedStr(values=parts):
            yield "".join(
                re.escape(str(part.value)) if isinstance(part, ast.Constant) else ".*" for part in parts
            )
        case ast.IfExp(body=one, orelse=other):
            yield from _texts(one, known, depth)
            yield from _texts(other, known, depth)
        case ast.BoolOp(values=values):
            for each in values:
                yield from _texts(each, known, depth)
        case ast.Name(id=name) if name in known and depth < 3:
            for each in known[name]:
                yield from _texts(each, known, depth + 1)
        case _:
            yield ANYTHING
