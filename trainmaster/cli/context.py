"""`trainmaster context`: shows or keeps where the other commands work."""

from pathlib import Path

import click

from trainmaster.cli.exits import ExitStatus, Stop, why_unwritable
from trainmaster.cli.verb import context_of, talk
from trainmaster.client.context import FORMS, keep_choice, settings_folder


@click.group(invoke_without_command=True)
@click.pass_context
def context(call: click.Context) -> int:
    """Show where the other commands work, or choose it: the local stack, or a project and region.

    The order of choice: --context, the variable TRAINMASTER_CONTEXT, `context use`, the stack that runs.
    """
    if call.invoked_subcommand is not None:
        return 0
    current = context_of(None)
    click.echo(current.name)
    talk(f"{current.title[0].upper()}{current.title[1:]}, {current.chosen_by}.")
    return 0


@context.command()
@click.argument("name", required=False)
@click.option("--clear", is_flag=True, help="forget the choice")
def use(name: str | None, clear: bool) -> int:
    """Keep NAME for later commands.

    NAME is local, local:DIR or PROJECT/REGION; /NAME behind local or the region chooses a deployment with a name.
    """
    if (name is None) != clear:
        raise click.UsageError(f"Name a context ({FORMS}), or --clear the choice.")
    settings = settings_folder()
    if name is None:
        _keep(None, settings)
        talk("Later commands use the stack that runs.")
        return 0
    chosen = context_of(name, named_by="trainmaster context use")
    # `local` stays a choice by what runs; a folder is kept as a full path, which holds in every folder.
    _keep(name if name == "local" else chosen.name, settings)
    talk(f"Later commands use {chosen.title}.")
    return 0


def _keep(choice: str | None, settings: Path) -> None:
    try:
        keep_choice(choice, settings)
    except OSError as error:
        raise Stop(
            ExitStatus.USAGE,
            f"Cannot write to {str(settings)!r}: {why_unwritable(error)}. Choose another folder with TRAINMASTER_CONFIG, "
            "or the context itself with TRAINMASTER_CONTEXT.",
        ) from error
