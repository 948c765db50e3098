"""The likely meaning of a verb or option that does not exist: words of other tools first, then the nearest."""

from collections.abc import Collection, Mapping
from difflib import get_close_matches

import click

_VERBS: Mapping[str, tuple[str, ...]] = {
    "rm": ("delete", "remove", "del", "unapply"),
    "ls": ("list", "runs", "jobs", "ps", "history"),
    "show": ("describe", "get", "status", "inspect", "info"),
    "status": ("show", "describe", "get", "info", "state"),
    "submit": ("run", "train", "launch", "create", "execute"),
    "fire": ("run", "start", "trigger"),
    "apply": ("add", "create", "submit", "set", "update"),
    "pause": ("stop", "disable", "suspend"),
    "resume": ("enable", "unpause", "continue", "start"),
    "again": ("rerun", "retry", "resubmit", "restart", "repeat"),
    "replay": ("retry", "rerun", "again", "resend"),
    "rollback": ("restore", "revert", "undo"),
    "up": ("start", "serve", "boot"),
    "down": ("stop", "shutdown", "halt"),
    "cancel": ("stop", "kill", "abort", "end", "delete", "remove", "rm"),
    "logs": ("tail", "follow"),
    "check": ("validate", "lint", "verify"),
    "plan": ("preview", "estimate"),
    "web": ("ui", "dashboard", "console", "open"),
    "why": ("explain", "trace"),
    "champions": ("models", "best"),
    "download": ("fetch", "pull"),
    "init": ("new", "scaffold"),
    "demo": ("example", "tutorial"),
    "context": ("config", "project", "login"),
}
"""Other tools' words by our own; a word that several have is suggested as all that exist."""
_OPTIONS: Mapping[str, str] = {
    "--json": "-o json",
    "--yaml": "-o yaml",
    "--quiet": "-o name",
    "-q": "-o name",
    "--format": "-o",
    "--project": "--context PROJECT/REGION",
    "--region": "--context PROJECT/REGION",
    "--follow": "-f",
}
"""Suggested where the option, which is the first word, exists, and its value if it has a choice."""


def with_hint(fault: click.ClickException) -> click.ClickException:
    """The same fault, with a better suggestion if it is about a name that does not exist."""
    if isinstance(fault, click.NoSuchCommand) and isinstance(fault.ctx, click.Context):
        known = (
            fault.ctx.command.list_commands(fault.ctx) if isinstance(fault.ctx.command, click.Group) else ()
        )
        return click.UsageError(unknown_command(fault.command_name, known, fault.ctx.command_path), fault.ctx)
    if isinstance(fault, click.NoSuchOption) and fault.ctx is not None:
        meant = _OPTIONS.get(fault.option_name)
        if meant is not None and _exists(meant, fault.ctx.command):
            return click.UsageError(f"{fault.message} Did you mean '{meant}'?", fault.ctx)
    return fault


def unknown_command(name: str, known: Collection[str], command: str) -> str:
    """That `command` has no such verb among the known ones, and which may be meant."""
    meant = [verb for verb, others in _VERBS.items() if verb in known and name in others]
    meant = meant or get_close_matches(name, known, n=1)
    hint = (
        f"Did you mean {' or '.join(map(repr, meant))}?" if meant else f"{command} --help lists the commands."
    )
    return f"No such command {name!r}. {hint}"


def _exists(suggested: str, command: click.Command) -> bool:
    option, _, value = suggested.partition(" ")
    for param in command.params:
        if option in param.opts:
            return not (isinstance(param.type, click.Choice) and value) or value in param.type.choices
    return False
