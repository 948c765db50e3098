"""Who sends a request or an order, and from which git commit, as metadata for the service: core/runs/sender.py."""

import getpass
import os
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from trainmaster.client.clients import Clients
from trainmaster.orchestrator.core.runs.sender import (
    ACCOUNT_KEY,
    BRANCH_KEY,
    COMMIT_KEY,
    DIRTY_KEY,
    NAME_KEY,
    VALUE_MAX_CHARS,
    Commit,
)

GIT_WITHIN_S = 3.0
SENT_FOR_VARIABLE = "TRAINMASTER_SENT_FOR"
"""For whom or what this process sends: the sender's name has it behind that of the user."""
_CI_USERS = ("GITHUB_ACTOR", "GITLAB_USER_LOGIN", "BUILD_REQUESTEDFOREMAIL", "CIRCLE_USERNAME")
_CI_BRANCHES = ("GITHUB_REF_NAME", "CI_COMMIT_REF_NAME", "BUILD_SOURCEBRANCHNAME", "CIRCLE_BRANCH")
_PROBE = "filter.trainmaster.clean"
"""git before 2.31 does not show it, because it takes no configuration from its environment."""
_SAFE: Mapping[str, str] = {
    "core.fsmonitor": "", "core.hooksPath": os.devnull, "protocol.allow": "never", _PROBE: "",
}  # fmt: skip
"""With it git starts no program that a repository's configuration names, and fetches nothing."""


def sender_metadata(clients: Clients, commit: Commit | None = None) -> dict[str, str]:
    """The metadata that name the sender: a console's person, the credentials' user, CI's, a service account, or the login name."""
    credentials = clients.storage._credentials  # noqa: SLF001 - the client has no property for them
    account, name = str(getattr(credentials, "account", "")), _first_of(_CI_USERS)
    robot = str(getattr(credentials, "service_account_email", ""))
    if not account and not name and "@" in robot:
        account = robot
    with suppress(OSError, KeyError, ImportError):  # the user has no name on this machine
        name = name or getpass.getuser()
    found = {ACCOUNT_KEY: clients.person or account, NAME_KEY: name}
    if sent_for := os.environ.get(SENT_FOR_VARIABLE):
        found = {key: f"{value}, {sent_for}" for key, value in found.items() if value}
    if commit is not None:
        dirty = "" if commit.dirty is None else str(commit.dirty).lower()
        found |= {COMMIT_KEY: commit.id, BRANCH_KEY: commit.branch or "", DIRTY_KEY: dirty}
    return {key: value[:VALUE_MAX_CHARS] for key, value in found.items() if value}


def _first_of(variables: tuple[str, ...]) -> str:
    return next(filter(None, map(os.environ.get, variables)), "")


def read_commit(folder: Path) -> Commit | None:
    """The commit that is checked out in the folder; None without git, a repository, a commit, or an answer in time."""
    head = _git(folder, "rev-parse", "HEAD", "--abbrev-ref", "HEAD")
    commit_id, _, branch = (head or "").strip().partition("\n")
    if not commit_id:
        return None
    # Files that may differ go through the filters of the repository's configuration, which are programs.
    filters = _git(folder, "config", "--null", "--name-only", "--get-regexp", r"^filter\.") or ""
    off = dict.fromkeys(filter(None, filters.split("\0")), "")
    status = ("status", "--porcelain", "--ignore-submodules", "--", ".")
    changes = _git(folder, *status, config=off) if _PROBE in off else None
    return Commit(
        id=commit_id,
        branch=branch if branch != "HEAD" else _first_of(_CI_BRANCHES) or None,
        dirty=None if changes is None else bool(changes.strip()),
    )


def _git(folder: Path, *words: str, config: Mapping[str, str] | None = None) -> str | None:
    """What git prints; None if it cannot be run, fails, or takes too long."""
    settings = {**_SAFE, **(config or {})}
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    environment |= {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings.items()):
        environment |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    try:
        said = subprocess.check_output(
            ["git", *words],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=GIT_WITHIN_S,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return said.decode(errors="replace")
