"""Writes the data of the judges, from wheels that others publish: Google's APIs, and the arguments of Terraform's provider.

    python -m tests.judges.renew

The data is kept because the wheels are large: more than 100 MB each when installed.
To renew it, change the versions below; CONTRIBUTING.md says when.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.judges.classes import RESOURCES, schema_of
from tests.judges.documents import METHODS, ROUTED, routes_of, trimmed
from tests.judges.transports import CLIENTS, methods_of

DATA = Path(__file__).resolve().parent / "data"
CLIENT = "google-api-python-client==2.202.0"
PULUMI = "pulumi-gcp==9.36.1"
"""The newest release that was made from the provider's version of trainmaster/deploy/terraform/versions.tf.

Source: https://github.com/pulumi/pulumi-gcp/pull/3982
"""
PROVIDER_VERSION = "7.46.0"
LICENCE = "Apache-2.0"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        client = unpacked(CLIENT, Path(folder))
        for name, beginnings in METHODS.items():
            path = client / f"googleapiclient/discovery_cache/documents/{name}.json"
            document = trimmed(json.loads(path.read_text()), beginnings)
            write(DATA / f"{name}.json", CLIENT, document)
        documents = {
            name: client / f"googleapiclient/discovery_cache/documents/{name}.json" for name in ROUTED
        }
        write(
            DATA / "routes.json",
            CLIENT,
            {name: routes_of(json.loads(path.read_text())) for name, path in documents.items()},
        )
        for name, (requirement, module, kept) in CLIENTS.items():
            source = (unpacked(requirement, Path(folder)) / module).read_text()
            write(DATA / f"{name}.json", requirement, methods_of(source, kept))
        package = unpacked(PULUMI, Path(folder)) / "pulumi_gcp"
        resources = {name: schema_of(package, pulumi) for name, pulumi in RESOURCES.items()}
        write(DATA / "provider.json", PULUMI, {"provider": PROVIDER_VERSION, "resources": resources})


def unpacked(requirement: str, folder: Path) -> Path:
    """The package's files, from the index that this machine is set up for, without the packages that it needs."""
    target = folder / requirement.partition("=")[0]
    options = ("--quiet", "--no-deps", "--target", str(target))
    subprocess.run([sys.executable, "-m", "uv", "pip", "install", *options, requirement], check=True)
    return target


def write(path: Path, source: str, content: Mapping[str, Any]) -> None:
    """One line for each method, schema and resource, so that a renewal shows what changed."""
    today = datetime.now(UTC).date().isoformat()
    head = {"source": source, "licence": LICENCE, "date": today, "renew": "python -m tests.judges.renew"}
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        "{\n"
        + ",\n".join(f'"{key}": {_lines(value)}' for key, value in (head | dict(content)).items())
        + "\n}\n"
    )


def _lines(value: object) -> str:
    if not isinstance(value, dict):
        return json.dumps(value)
    return (
        "{\n" + ",\n".join(f" {json.dumps(key)}: {json.dumps(value[key])}" for key in sorted(value)) + "\n}"
    )


if __name__ == "__main__":
    main()
