"""`trainmaster completion SHELL`: the shell's script that completes verbs, options and file names."""

from collections.abc import Mapping

import click
from click.shell_completion import BashComplete, FishComplete, ShellComplete, ZshComplete

VARIABLE = "_TRAINMASTER_COMPLETE"
"""Set by the script when it asks the command for completions."""
NAME = "trainmaster"
_SHELLS: Mapping[str, type[ShellComplete]] = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


@click.command()
@click.argument("shell", type=click.Choice(list(_SHELLS)))
@click.pass_context
def completion(call: click.Context, shell: str) -> int:
    """Print the completion script of SHELL.

    \b
    bash: add to ~/.bashrc   eval "$(trainmaster completion bash)"
    zsh:  add to ~/.zshrc    eval "$(trainmaster completion zsh)"
    fish: trainmaster completion fish > ~/.config/fish/completions/trainmaster.fish

    Needs bash 4.4 or newer.
    """  # noqa: D301 - the backspace that keeps click from joining the lines
    # Not the class's `source`, which runs the bash of this machine to check its version.
    script = _SHELLS[shell](call.find_root().command, {}, NAME, VARIABLE)
    click.echo(script.source_template % script.source_vars())
    return 0
