"""Where the project's own files are: the functions' and the trainer's sources, schemas, examples, topology.

In a checkout they lie at its root. An installed package carries a copy of that root, for `functions`, `trainer` and
`schemas` are names that users' own packages have, and must not be importable from an environment of theirs.
"""

import string
from collections.abc import Iterator
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

TOPOLOGY = DEPLOY / "topology.yaml"
"""The resources of every deployment, in which PLACEHOLDERS are substituted."""

PLACEHOLDERS = ("project", "region", "deployment", "prefix")

TOPOLOGY_MAX_BYTES = 1024 * 1024
_BUCKETS = ("inbox", "ledger", "models", "champions", "data")
_TOPOLOGY_PARTS = {
    "buckets": _BUCKETS,
    "topics": (),
    "sinks": (),
    "functions": (),
    "environment": ("TRAINMASTER_REGION", *(f"TRAINMASTER_{role.upper()}_BUCKET" for role in _BUCKETS)),
    "images": ("trainer",),
}
"""What the stack and the doctor look up by name, by section."""

EDITOR_LINE = "# yaml-language-server: $schema="
"""Begins a YAML file that editors complete and check by a schema, by VS Code's YAML extension and others."""


def parse_yaml(text: str) -> Any:  # Any: YAML
    """The value of one of the files above, read by libyaml where it is built, in a tenth of the time.

    Raises:
        yaml.YAMLError: it is not YAML.
    """
    import yaml  # not every command reads such a file

    return yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe


class NotATopology(ValueError):
    """The file is something else; the message says which, what it lacks, and where the default one is."""


def parse_topology(file: Path, *, project: str, region: str, deployment: str = "") -> dict[str, Any]:
    """The topology in the file, for the deployment of this name. It has each part that is looked up by name.

    Raises:
        NotATopology: the file lacks such a part, has other variables, is too large, or is no regular file.
        OSError, ValueError, yaml.YAMLError: it cannot be read.
    """
    if file.exists() and not file.is_file() and not file.is_dir():
        raise NotATopology(f"{file}: expected a topology, found no regular file.")
    with file.open("rb") as opened:
        content = opened.read(TOPOLOGY_MAX_BYTES + 1)
    if len(content) > TOPOLOGY_MAX_BYTES:
        raise NotATopology(
            f"{file} is not a topology: it has more than {TOPOLOGY_MAX_BYTES} bytes. {_INSTEAD}"
        )
    try:
        prefix = deployment and f"{deployment}-"
        values = dict(zip(PLACEHOLDERS, (project, region, deployment, prefix), strict=True))
        text = string.Template(content.decode()).substitute(values)
    except KeyError as error:
        raise NotATopology(
            f"{file}: unknown substitution ${{{error.args[0]}}}; expected one of {', '.join(f'${{{name}}}' for name in PLACEHOLDERS)}."
        ) from error
    topology = parse_yaml(text)
    missing = tuple(_iter_missing(topology if isinstance(topology, dict) else {}))
    if missing:
        raise NotATopology(f"{file} is not a topology: it has no {', '.join(missing)}. {_INSTEAD}")
    return dict(topology)


def _iter_missing(topology: dict[object, Any]) -> Iterator[str]:  # Any: YAML
    for section, names in _TOPOLOGY_PARTS.items():
        found = topology.get(section)
        if not isinstance(found, dict):  # an empty one is allowed: functions may run elsewhere
            yield section
        else:
            yield from (f"{section}.{name}" for name in names if name not in found)


_INSTEAD = f"The default one is {TOPOLOGY}: copy and change it, or leave out --topology."
