"""A simulated Cloud Build of cloudbuild.yaml: substitutions resolved, steps run one after the other.

Source: https://cloud.google.com/build/docs/configuring-builds/substitute-variable-values, read 2026-11.
Steps run on this machine, not in their images; `shims` holds the programs that those images would bring.
"""

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.processes import run_to_end

ROOT = Path(__file__).resolve().parents[2]
GIVEN = {
    "PROJECT_ID": "my-project",
    "PROJECT_NUMBER": "123456789012",
    "BUILD_ID": "0a1b2c3d-0000-4000-8000-000000000001",
    "LOCATION": "us-central1",
    "COMMIT_SHA": "0123456789abcdef0123456789abcdef01234567",
}
_REFERENCE = re.compile(r"\$\$|\$\{(?P<braced>\w+)\}|\$(?P<bare>\w+)")


def loaded() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "cloudbuild.yaml").read_text())
    return found


def substitutions(build: Mapping[str, Any], **given: str) -> dict[str, str]:
    """Every variable's value. Dynamic substitutions may name others, also those that are given."""
    values = {**GIVEN, **build["substitutions"], **given}
    for _ in values:  # as many rounds as a chain could be long
        values = {name: substituted(value, values) for name, value in values.items()}
    return values


def substituted(text: str, values: Mapping[str, str]) -> str:
    """The text with its variables replaced.

    Raises:
        KeyError: a variable that neither Cloud Build nor the file knows.
    """

    def value(match: re.Match[str]) -> str:
        return "$" if match[0] == "$$" else values[match["braced"] or match["bare"]]

    return _REFERENCE.sub(value, text)


@dataclass(frozen=True, kw_only=True)
class Worker:
    """A workspace with the programs that steps find."""

    workspace: Path
    output: Path
    shims: Path
    values: Mapping[str, str]
    surroundings: Mapping[str, str] = field(default_factory=dict)
    """Variables that every step gets on this machine, and none in the cloud."""

    def run(self, build: Mapping[str, Any], *ids: str) -> None:
        """Run these steps in the file's order.

        Raises:
            subprocess.CalledProcessError: a step failed; `stderr` says why.
        """
        for step in build["steps"]:
            if step["id"] in ids:
                self._run(step, build["options"].get("env", []))

    def _run(self, step: Mapping[str, Any], shared: list[str]) -> None:
        own = dict(substituted(pair, self.values).split("=", 1) for pair in [*shared, *step.get("env", [])])
        try:
            run_to_end(
                [step["entrypoint"], *(substituted(word, self.values) for word in step["args"])],
                cwd=self.workspace / step.get("dir", ""),
                env={
                    "PATH": f"{self.shims}:{os.environ['PATH']}",
                    "HOME": str(self.output),
                    "BUILDER_OUTPUT": str(self.output),
                    **self.surroundings,
                    **own,
                },
                check=True,
            )
        except subprocess.CalledProcessError as failed:
            failed.add_note(f"step {step['id']}:\n{failed.stdout}{failed.stderr}")
            raise
