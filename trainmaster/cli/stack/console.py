"""The console that `up` starts beside the stack."""

import os
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from trainstack.stack.console import StackConsole
    from trainstack.stack.options import StackOptions
    from trainstack.stack.state import StateFolder

WRITE, READ, OFF = "write", "read", "off"
VARIABLE = "TRAINMASTER_CONSOLE"
"""The variable of `stack.env` with the address."""


def announced_console(access: str, options: "StackOptions", state: "StateFolder") -> "StackConsole | None":
    """The console of a stack on `state`, whose address this prints; None for `OFF`.

    Raises:
        StackRefusedError: its port, or that of another service, is in use.
    """
    if access == OFF:
        return None
    from trainstack.stack.ports import refuse_taken_ports

    if options.port_base is not None:
        refuse_taken_ports(options.port_base)  # before an address is printed that would lead nowhere
    from trainmaster.cli.stack.process import command_line
    from trainstack.stack.console import StackConsole, open_listener

    words = ["web", "--context", f"local:{state.path}", *(["--write"] if access == WRITE else [])]
    console = StackConsole(
        listener=open_listener(port_base=options.port_base, last_ports=state.ports()),
        command=lambda descriptor: command_line(*words, "--listener", str(descriptor)),
        environment=os.environ,
    )
    say_address(console.url)
    return console


def say_address(address: str) -> None:
    """Print where to open the console: the first line of `up`."""
    click.echo(f"Console  {address}")
