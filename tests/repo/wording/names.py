"""Names that were replaced: no Python of the repository may define one again."""

import ast
from collections.abc import Iterator

REPLACED = {
    "Happened": "FlowResult",
    "happened": "result",
    "Once": "SingleJob",
    "Walk": "QueuePass",
    "Told": "EndReport, or what it records",
    "in_hands": "mark_claimed",
    "why_ended": "submission_blocker",
    "rung": "candidate",
    "ladder": "fallbacks",
    "Standards": "RequestRules",
    "RuleStandards": "RuleRequirements",
    "standards": "request_rules",
    "heeds": "matches",
    "settle": "complete",
    "settle_hint": "complete_from_log",
    "settle_job": "complete_run",
    "tell_status": "write_status",
    "tell_steps": "publish_states",
    "sweep": "reconcile",
    "telling": "notices, or what it tells apart",
    "terms_spelled_out": "normalize_admission",
}
"""Each old name with the new one."""


def replaced_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line, counted from one, and name of each definition, parameter, variable or import that has an old name."""
    for node in ast.walk(tree):
        for name in _defined(node):
            if name in REPLACED:
                yield getattr(node, "lineno", 1), name


def _defined(node: ast.AST) -> list[str]:
    match node:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [name]
        case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
            return [name]
        case ast.ImportFrom(names=names) | ast.Import(names=names):
            return [alias.asname or alias.name for alias in names]
    return []
