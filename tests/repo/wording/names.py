"""Names that were replaced: no Python of the repository may define one again."""

import ast
import re
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
    "Heard": "ParsedNotice",
    "Said": "FunctionLine",
    "Own": "OwnDocument",
    "Thing": "GrantTarget",
    "Try": "RefusedCandidate",
    "unheard": "missing_notices",
    "Arrival": "IncomingDocument; ArrivedObject is an object that rules watch for",
    "PlaceAt": "PlaceholderAt",
    "ModelPlace": "ModelLocation",
    "TrialPlace": "TrialAssignment",
    "telling": "notices, or what it tells apart",
    "terms_spelled_out": "normalize_admission",
}
"""Each old name with the new one."""
_READS_FROM = re.compile(r"(?!is_|has_|test_)\w+(?<!_take)(?<!_train)_in")
"""`hint_in(message)` is `parse_hint(message)`; a verb, as in `_take_in`, and a claim, as in `is_number_in`, may end so."""


def replacement(name: str) -> str | None:
    """What to write instead of a name; None for one that is in use."""
    return REPLACED.get(name)


def function_replacement(name: str) -> str | None:
    """What to write instead of a function's name; None for one that is in use."""
    verb = "parse_*, iter_*, find_* or read_*" if _READS_FROM.fullmatch(name) else None
    return replacement(name) or verb


_MAY_BE_REPLACED = re.compile(rf"\b(?:{'|'.join(REPLACED)})\b|\bdef\s+\w+_in\b")


def replaced_names(content: str) -> Iterator[tuple[int, str, str]]:
    """Each definition, parameter, variable or import with an old name: its line, from one, that name, the new one."""
    if not _MAY_BE_REPLACED.search(content):
        return
    for node in ast.walk(ast.parse(content)):
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for name in _defined(node):
            new = function_replacement(name) if is_function else replacement(name)
            if new is not None:
                yield getattr(node, "lineno", 1), name, new


def _defined(node: ast.AST) -> list[str]:
    match node:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [name]
        case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
            return [name]
        case ast.ImportFrom(names=names) | ast.Import(names=names):
            return [alias.asname or alias.name for alias in names]
    return []
