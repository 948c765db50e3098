"""Calls of JobService as injections see them: methods such as `customJobs.create`, jobs by name, new ones by display name and labels."""

import functools
import re

from starlette.types import Scope

from trainstack.injections.http import json_fields, method_at

_PATH = re.compile(
    r"/v1(?:beta1)?/(?P<name>projects/[^/]+/locations/[^/]+"
    r"/(?P<collection>customJobs|hyperparameterTuningJobs)(?:/(?P<id>[^/:]+))?)(?::(?P<verb>[a-z]+))?"
)
method_of = functools.partial(method_at, _PATH)


def subjects(scope: Scope, body: bytes) -> tuple[str, ...]:
    """The resource's full name; for a new job, also its display name and its labels as `KEY=VALUE`."""
    found, job = _PATH.fullmatch(scope["path"]), json_fields(body)
    display_name, labels = job.get("displayName"), job.get("labels")
    names = [display_name] if isinstance(display_name, str) else []
    names += [found["name"]] if found else []
    return (
        *names,
        *(f"{key}={value}" for key, value in (labels.items() if isinstance(labels, dict) else ())),
    )
