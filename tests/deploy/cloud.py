"""A simulated Google Cloud project, served by scripts that replace gcloud and terraform."""

import json
import marshal
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.command import Done, trainmaster

ROOT = Path(__file__).resolve().parents[2]
FAKES = Path(__file__).resolve().parent / "fake_cloud"
# The scripts' own `python3` is this one: a version manager's would take three times as long to start.
PROGRAMS = f"{FAKES}{os.pathsep}{Path(sys.executable).parent}"
PROJECT, REGION, NUMBER = "tm-tests", "europe-west4", "4711"
STATE = f"gs://{PROJECT}-terraform/trainmaster/default.tfstate"


@dataclass(frozen=True, kw_only=True)
class Ran(Done):
    """What a command answered, and what it asked of gcloud and terraform."""

    asked: tuple[str, ...]

    @property
    def changes(self) -> list[str]:
        """What was asked that changes anything in a project."""
        reading = ("describe", "list", "cat", "print-access-token")
        return [line for line in self.asked if not any(f" {word}" in line for word in reading)]


class Cloud:
    """The project that the scripts serve."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.content: dict[str, Any] = {
            "projects": {PROJECT: {"lifecycleState": "ACTIVE", "projectNumber": NUMBER}},
            "buckets": {},
            "objects": {},
            "lists": {},
            "forbidden": [],
            "disabled": [],
            "lacking": {},
            "credentials": True,
            "login": True,
            "asking_for_agents": "",
            "agents": [],
            "binding": "",
            "policies": {},
            "secrets": [],
            "keys": [],
        }
        self.terraform: dict[str, Any] = {"version": "1.11.4", "state": []}

    def has_bucket(self, name: str, *, location: str = REGION, number: str = NUMBER) -> None:
        self.content["buckets"][name] = {"name": name, "location": location.upper(), "projectNumber": number}

    def has_state(self, *resources: Mapping[str, Any]) -> None:
        self.has_bucket(f"{PROJECT}-terraform")
        self.content["objects"][STATE] = json.dumps({"version": 4, "resources": resources})

    def run(
        self, verb: str, *words: str, project: str = PROJECT, region: str = REGION, path: str | None = None
    ) -> Ran:
        (self.folder / "cloud.value").write_bytes(marshal.dumps(self.content))
        (self.folder / "terraform.value").write_bytes(marshal.dumps(self.terraform))
        (self.folder / "asked").write_text("")
        path = path or f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
        ran = trainmaster(
            *(verb, "--project", project, "--region", region, *words),
            cwd=self.folder,
            environment={**os.environ, "PATH": path, "FAKE_CLOUD": str(self.folder)},
        )
        asked = (self.folder / "asked").read_text().splitlines()
        return Ran(status=ran.status, out=ran.out, err=ran.err, asked=tuple(asked))

    def up(self, *words: str, project: str = PROJECT, region: str = REGION, path: str | None = None) -> Ran:
        return self.run("deploy", *words, project=project, region=region, path=path)

    def down(self, *words: str, region: str = REGION) -> Ran:
        return self.run("undeploy", *words, region=region)


def managed(type_: str, **attributes: str) -> dict[str, Any]:
    return {"mode": "managed", "type": type_, "name": "x", "instances": [{"attributes": attributes}]}


def terraform_said(ran: Ran, word: str) -> list[str]:
    return [line.removeprefix("terraform ") for line in ran.asked if line.startswith(f"terraform {word}")]
