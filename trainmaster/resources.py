"""Where the project's own files are: the functions' and the trainer's sources, schemas, examples, topology.

In a checkout they lie at its root. An installed package carries a copy of that root, for `functions`, `trainer` and
`schemas` are names that users' own packages have, and must not be importable from an environment of theirs.
"""

from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parent
"""The folder of the package `trainmaster` itself."""

IMPORTED_FROM = PACKAGE.parent
"""The folder from which `import trainmaster` finds this package: for the import path of processes that need it."""

_BUNDLE = PACKAGE / "bundle"  # made when the wheel is built: pyproject.toml

ROOT = _BUNDLE if _BUNDLE.is_dir() else PACKAGE.parent
"""The folder with `functions/`, `trainer/`, `schemas/`, `examples/` and `Dockerfile`. Read it, never write to it."""

DEPLOY = PACKAGE / "deploy"
"""The folder with `topology.yaml`, `permissions.yaml`, `log_sink.filter` and `terraform/`."""

EDITOR_LINE = "# yaml-language-server: $schema="
"""Begins a YAML file that editors complete and check by a schema, by VS Code's YAML extension and others."""


def parse_yaml(text: str) -> Any:  # Any: YAML
    """The value of one of the files above, read by libyaml where it is built, in a tenth of the time.

    Raises:
        yaml.YAMLError: it is not YAML.
    """
    import yaml  # not every command reads such a file

    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
