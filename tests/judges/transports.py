"""Methods of APIs whose discovery documents google-api-python-client lacks, from the source of Google's clients.

Those have verbs and paths only: a body's form in JSON is nowhere in them.
"""

import ast
import re
from collections.abc import Mapping
from typing import Any

CLIENTS: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "workloadidentity.v1": (
        "google-cloud-workloadidentity==0.1.1",
        "google/cloud/workloadidentity_v1/services/workload_identity/transports/rest_base.py",
        ("GenerateServiceAgents", "GetOperation"),
    ),
}
"""Of each API its client, the module there that has the paths, and the methods that are kept."""
_ANY = "AnyBody"


def methods_of(source: str, kept: tuple[str, ...]) -> dict[str, Any]:
    """Like a discovery document, with the methods on projects; it judges no body.

    Raises:
        LookupError: the source lacks one of the methods.
    """
    methods = {}
    for each in ast.walk(ast.parse(source)):
        if isinstance(each, ast.ClassDef) and (name := each.name.removeprefix("_Base")) in kept:
            verb, path = _route(each)
            methods[name] = {
                "verb": verb,
                "path": path,
                "request": _ANY,
                "response": _ANY,
                "parameters": {},
            }
    if missing := set(kept) - methods.keys():
        raise LookupError(f"the client has no {sorted(missing)}")
    return {"query": {}, "methods": methods, "schemas": {_ANY: {"type": "any"}}}


def _route(method: ast.ClassDef) -> tuple[str, str]:
    """The verb and path of the method's only route on a project."""
    ((verb, path),) = [
        (route["method"].upper(), route["uri"])
        for each in ast.walk(method)
        if isinstance(each, ast.AnnAssign) and isinstance(each.value, ast.List)
        for route in ast.literal_eval(each.value)
        if "=projects/" in route["uri"]
    ]
    pattern = re.sub(r"\{\w+=([^}]+)\}", r"\1", path)
    return verb, pattern.lstrip("/").replace("*", "{name}")
