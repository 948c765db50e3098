"""What injections match in JobService: methods such as `customJobs.create`, jobs by name, new ones by display name and labels."""

import json
import re

from starlette.types import Scope

_PATH = re.compile(
    r"/v1(?:beta1)?/(?P<name>projects/[^/]+/locations/[^/]+"
    r"/(?P<collection>customJobs|hyperparameterTuningJobs)(?:/(?P<job>[^/:]+))?)(?::(?P<verb>[a-z]+))?"
)
_METHODS = {
    ("POST", False): "create",
    ("GET", False): "list",
    ("GET", True): "get",
    ("DELETE", True): "delete",
}


def named(scope: Scope) -> str | None:
    """The method, as in the discovery document after `projects.locations.`; None for a path that only the stack has."""
    found = _PATH.fullmatch(scope["path"])
    if not found:
        return None
    method = found["verb"] or _METHODS.get((scope["method"], found["job"] is not None))
    return f"{found['collection']}.{method}" if method else None


def subjects(scope: Scope, body: bytes) -> tuple[str, ...]:
    """The resource's full name; for a new job, also its display name and its labels as `KEY=VALUE`."""
    found = _PATH.fullmatch(scope["path"])
    names = [found["name"]] if found else []
    try:
        job = json.loads(body) if body else {}
    except (ValueError, RecursionError):
        job = {}
    if isinstance(job, dict):
        display_name, labels = job.get("displayName"), job.get("labels")
        if isinstance(display_name, str):
            names.insert(0, display_name)
        if isinstance(labels, dict):
            names += [f"{key}={value}" for key, value in labels.items()]
    return tuple(names)
