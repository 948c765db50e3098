"""Rules kept as files in one folder: `trainmaster rules apply --prune DIR`."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmaster.cli.verb import talk

if TYPE_CHECKING:
    from trainmaster.client.rules.folder import RuleChanges


def folder_of(files: Sequence[str], *, prune: bool, alone: bool, policy: Path | None) -> Path | None:
    """The folder whose rules are to be the only ones; None without --prune.

    `alone`: whether an option is given that means something only with it.
    """
    if not prune:
        if alone:
            raise click.UsageError("--plan, --allow-empty and --yes are for --prune.")
        return None
    if len(files) != 1:
        raise click.UsageError(f"--prune takes one folder, which holds all rules; {len(files)} were given.")
    if policy is not None:
        raise click.UsageError("--prune checks with the deployed policy, which says whose rules they are.")
    return Path(files[0])


def agree_to(changes: "RuleChanges", folder: Path, where: str, *, plans: bool, yes: bool) -> bool:
    """Show every change, and whether to make them: never with `plans`, and where no one can be asked only with `yes`."""
    for line in changes.lines:
        talk(line)
    if not changes.lines:
        talk(f"The rules in {where} are those of {folder}; nothing changes.")
        return False
    if plans:
        talk(f"Nothing was changed. {changes.unchanged} unchanged.")
        return False
    if not yes:
        if not sys.stdin.isatty():
            raise click.UsageError("--prune needs --yes where no one can be asked. Nothing was changed.")
        click.confirm(f"Change the rules in {where}?", abort=True, err=True)
    return True
