"""Every page of the console, with something to show."""

from collections.abc import Mapping

from .sample import Sample

_PATHS = {
    "overview": "/",
    "runs": "/runs",
    "run": "/runs/{0.succeeded}",
    "run-live": "/runs/{0.running}",
    "run-failed": "/runs/{0.failed}",
    "run-waiting": "/runs/{0.waiting}",
    "compare": "/runs/compare?run={0.champion}&run={0.challenger}",
    "study": "/runs/{0.tuned}/study",
    "models": "/models",
    "model": "/models/roses",
    "rules": "/rules",
    "rule": "/rules/flowers-weekly",
    "queue": "/queue",
    "dead-letters": "/dead-letters",
    "try": "/try",
    "cancel": "/runs/{0.running}/cancel",
}
NAMES = tuple(_PATHS)
"""Of the pages and their pictures."""


def places(sample: Sample) -> Mapping[str, str]:
    """The path of each page by its name."""
    return {name: path.format(sample) for name, path in _PATHS.items()}
