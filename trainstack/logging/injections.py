"""Calls of Cloud Logging as injections see them: methods such as `entries.write`, logs and sinks by name."""

import functools
import re

from starlette.types import Scope

from trainstack.injections.http import json_fields, method_at

_PATH = re.compile(
    r"/v2/(?P<name>(?:projects/[^/]+/)?(?P<collection>entries|sinks)(?:/(?P<id>[^:]+))?)(?::(?P<verb>[a-z]+))?"
)
method_of = functools.partial(method_at, _PATH)


def subjects(scope: Scope, body: bytes) -> tuple[str, ...]:
    """For written entries, the names of their logs, each once; else the resource's full name."""
    found = _PATH.fullmatch(scope["path"])
    if found and found["collection"] == "sinks":
        return (found["name"],)
    request = json_fields(body)
    entries = request.get("entries")
    logged = [request, *(entries if isinstance(entries, list) else [])]
    logs = [entry.get("logName") for entry in logged if isinstance(entry, dict)]
    return tuple(dict.fromkeys(log for log in logs if isinstance(log, str) and log))
