"""How injections see Cloud Logging: `entries.write` and so on; entries by their logs, sinks and logs by name."""

import json
import re

from starlette.types import Scope

_ENTRIES = re.compile(r"/v2/entries:(write|list|tail)")
_OTHERS = re.compile(r"/v2/((?:projects|organizations|folders|billingAccounts)/[^/]+/(sinks|logs)(?:/(.+))?)")
_METHODS = {
    ("GET", False): "list",
    ("POST", False): "create",
    ("GET", True): "get",
    ("PUT", True): "update",
    ("PATCH", True): "update",
    ("DELETE", True): "delete",
}


def named(scope: Scope) -> str | None:
    """The method, as in the discovery document; None for a path of the emulator's own."""
    if entries := _ENTRIES.fullmatch(scope["path"]):
        return f"entries.{entries[1]}"
    if others := _OTHERS.fullmatch(scope["path"]):
        method = _METHODS.get((scope["method"], others[3] is not None))
        return f"{others[2]}.{method}" if method else None
    return None


def subjects(scope: Scope, body: bytes) -> tuple[str, ...]:
    """Of written entries the names of their logs, each once; else the resource's full name."""
    if others := _OTHERS.fullmatch(scope["path"]):
        return (others[1],)
    try:
        request = json.loads(body)
    except (ValueError, RecursionError):
        return ()
    if not isinstance(request, dict):
        return ()
    entries = request.get("entries")
    logs = (
        [each.get("logName") for each in entries if isinstance(each, dict)]
        if isinstance(entries, list)
        else []
    )
    return tuple(
        dict.fromkeys(log for log in [request.get("logName"), *logs] if isinstance(log, str) and log)
    )
