"""Queries to Google Cloud through the `gcloud` on PATH, which has the user's credentials."""

import json
import os
import subprocess
from collections.abc import Sequence
from typing import Any, TypeVar

TIMEOUT_S = 120
Answer = TypeVar("Answer", dict[str, Any], list[dict[str, Any]])

# gcloud's exit status is 1 for every error, so these fragments of its messages classify them.
_ABSENT = ("not found: 404", "NOT_FOUND", "HTTPError 404", "does not exist")
_FORBIDDEN = ("HTTPError 403", "PERMISSION_DENIED", "does not have permission", "does not have storage.")
_SWITCHED_OFF = ("SERVICE_DISABLED", "has not been used in project", "not enabled on project", "API [")


class GcloudFailed(Exception):
    """A command failed; `command` is without `gcloud`, `said` is its error output."""

    def __init__(self, command: Sequence[str], said: str) -> None:
        super().__init__(f"gcloud {' '.join(command)} failed: {said}")
        self.command = tuple(command)
        self.said = said

    @property
    def absent(self) -> bool:
        return any(words in self.said for words in _ABSENT) and not self.forbidden

    @property
    def forbidden(self) -> bool:
        return any(words in self.said for words in _FORBIDDEN)

    @property
    def switched_off(self) -> bool:
        """The service is not enabled in the project, so it has no resources there."""
        return any(words in self.said for words in _SWITCHED_OFF)


def gcloud(*command: str) -> str:
    """The command's output. It never prompts: every prompt gets its default, as with `--quiet`.

    Raises:
        GcloudFailed: the command failed, or took longer than TIMEOUT_S.
    """
    try:
        ran = subprocess.run(
            ["gcloud", *command],
            capture_output=True,
            text=True,
            env={**os.environ, "CLOUDSDK_CORE_DISABLE_PROMPTS": "1"},
            timeout=TIMEOUT_S,
            check=False,
        )
    except FileNotFoundError as missing:
        raise GcloudFailed(command, "gcloud is not on PATH: https://cloud.google.com/sdk") from missing
    except subprocess.TimeoutExpired as late:
        raise GcloudFailed(command, f"no answer within {TIMEOUT_S} s") from late
    if ran.returncode != 0:
        raise GcloudFailed(command, " ".join(ran.stderr.split()))
    return ran.stdout


def describe_resource(*command: str) -> dict[str, Any]:
    """The resource that the command describes.

    Raises:
        GcloudFailed: as `gcloud`; also if the output is not a JSON object.
    """
    return _answer(dict, *command)


def list_resources(*command: str) -> list[dict[str, Any]]:
    """Everything that the command lists; empty if the service is not enabled.

    Raises:
        GcloudFailed: as `gcloud`; also if the output is not a JSON list.
    """
    try:
        return _answer(list, *command)
    except GcloudFailed as failed:
        if failed.switched_off:
            return []
        raise


def _answer(kind: type[Answer], *command: str) -> Answer:
    printed = gcloud(*command, "--format=json")
    try:
        answer = json.loads(printed or "[]")
    except ValueError as fault:
        raise GcloudFailed(command, f"its answer is not JSON: {printed[:200]!r}") from fault
    if not isinstance(answer, kind):
        raise GcloudFailed(command, f"expected a JSON {kind.__name__}, found {answer!r}")
    return answer
