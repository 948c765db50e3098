"""The command `trainmaster`: finds the verb, and returns its exit status.

A verb's module is imported when the verb runs, so `--help` and `--version` load no client library.
Every verb returns its exit status, one of `exits.Exit`.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module

import click
from click.shell_completion import CompletionItem

from trainmaster.cli.exits import Exit, Stop, stop_for
from trainmaster.version import VERSION

VERBS: Mapping[str, tuple[str, str]] = {
    "demo": ("demo.command:demo", "Watch a request become a trained model, on this machine."),
    "up": ("stack.up:up", "Run the local stack: Google Cloud's services on this machine."),
    "down": ("stack.down:down", "Stop the local stack that runs on a state folder."),
    "stack": ("stack.command:stack", "Show the local stack, or change what runs on it."),
    "init": ("submit.init:init", "Write a request and a script to start from."),
    "wait": ("submit.wait:wait", "Wait until a run has ended."),
    "ls": ("runs.ls:ls", "List the newest runs."),
    "logs": ("logs.command:logs", "Print or follow the log of a run."),
    "status": ("runs.status:status", "Show one run, or a file or message without one."),
    "context": ("context:context", "Show or choose where the other commands work."),
    "cancel": ("runs.cancel:cancel", "End runs: cancel their jobs, or take them out of the queue."),
    "rules": ("rules.command:rules", "List, apply, fire or remove the rules that start runs."),
    "champions": ("rules.champions:champions", "List the best models, or restore an earlier one."),
    "check": ("check:check_files", "Check requests, rules and orders before anything is submitted."),
    "convert": ("convert:convert", "Print the Vertex AI form of a request in any dialect."),
    "study": ("study.command:study", "Draw a tuning job: learning curves, parameters and results."),
    "dead-letters": ("dead_letters.command:dead_letters", "List or replay the events that kept failing."),
    "completion": ("completion:completion", "Print the completion script of a shell."),
    "doctor": ("doctor:doctor", "Test every part of a deployment and show how to repair what fails."),
    "deploy": ("deploy:deploy", "Deploy to a project, or bring a deployment up to date."),
    "undeploy": ("deploy:undeploy", "Remove a deployment from a project."),
    "inspect": ("inspect:inspect", "Check a training program before you pay to run it."),
    "image": ("image:image", "Build the trainer's image on this machine, without a daemon."),
}
"""Module and function of each verb, and its line in `--help`."""


class Verbs(click.Group):
    """Imports a verb's module when the verb is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as above
        if cmd_name not in VERBS:
            return None
        module, _, name = VERBS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(f"trainmaster.cli.{module}"), name)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Without importing the verbs, as click would for their lines of help."""
        found = [
            CompletionItem(name, help=line)
            for name, (_, line) in VERBS.items()
            if name.startswith(incomplete)
        ]
        return [*found, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - as above
        with formatter.section("Commands"):
            formatter.write_dl([(name, help_) for name, (_, help_) in VERBS.items()])


@click.group("trainmaster", cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, message="trainmaster %(version)s")
def verbs() -> None:
    """Run training jobs on Vertex AI from events, here and in the cloud."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the verb in `arguments`, by default the command line's, and return its exit status."""
    try:
        status: int = verbs.main(arguments, standalone_mode=False, complete_var="_TRAINMASTER_COMPLETE")
    except Stop as stop:
        stop.show()
        return stop.status
    except click.ClickException as fault:
        fault.show()
        return fault.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("Stopped.", err=True)
        return Exit.INTERRUPTED
    except Exception as error:
        known = stop_for(error)
        if known is None:
            raise
        known.show()
        return known.status
    return status
