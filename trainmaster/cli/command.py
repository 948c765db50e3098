"""The command `trainmaster`: finds the verb, and returns its exit status.

A verb's module is imported when the verb runs, so `--help` and `--version` load no client library.
Every verb returns its exit status, one of `exits.Exit`.

It is built with click, which functions-framework brings already and which completes words in a shell;
argparse does not.
"""

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module

import click
from click.shell_completion import CompletionItem

from trainmaster.cli.exits import ExitStatus, Stop, open_standard_streams, stop_for, stop_for_output
from trainmaster.version import VERSION

SECTIONS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Start and end runs": {
        "init": ("submit.init:init", "Write a request and a script to start from."),
        "check": ("check:check_files", "Check requests, rules and orders before anything is submitted."),
        "plan": ("submit.plan_verb:plan", "Show what would happen to a request, and why."),
        "submit": ("submit.submit_verb:submit", "Start runs of request files, or of a script."),
        "wait": ("submit.wait:wait", "Wait until a run has ended."),
        "again": ("submit.again:again", "Submit the request of a run once more."),
        "cancel": ("runs.cancel:cancel", "End runs: cancel their jobs, or take them out of the queue."),
    },
    "Follow runs": {
        "ls": ("runs.ls:ls", "List the newest runs."),
        "status": ("runs.status:status", "Show one run, or a file or message without one."),
        "why": ("runs.why:why", "Explain a run, or where a model comes from."),
        "costs": ("runs.costs_verb:costs", "Show what runs have cost, by model, team, user or label."),
        "pools": ("pools:pools", "Create, resize, list or delete the machines that stay between runs."),
        "queue": ("runs.queue_verb:queue", "Show which runs wait, and for what."),
        "logs": ("logs.logs_verb:logs", "Print or follow the log of a run."),
        "watch": ("watch.watch_verb:watch", "Show a run live, from its event to its record."),
        "web": ("watch.web_verb:web", "Show all of it in the browser, live."),
        "download": ("runs.download:download", "Download the model of a run, and verify it."),
        "study": (
            "study.study_verb:study",
            "Show a tuning: trials, parameters, learning curves and results.",
        ),
    },
    "Rules and models": {
        "rules": ("rules.rules_verb:rules", "List, apply, fire or remove the rules that start runs."),
        "models": ("rules.champions:models", "List all models, or deploy registered ones on endpoints."),
        "champions": (
            "rules.champions:champions",
            "List the best models, approve one, or restore an earlier one.",
        ),
        "notices": ("rules.notices:notices", "List what was sent to receivers, or test one."),
        "clean": ("runs.clean:clean", "Remove runs, checkpoints and models that are no longer kept."),
        "dead-letters": ("dead_letters:dead_letters", "List or replay the events that kept failing."),
    },
    "Programs": {
        "inspect": ("inspect:inspect", "Check a training program before you pay to run it."),
        "image": ("image:image", "Build the trainer's image on this machine, without a daemon."),
    },
    "The local stack": {
        "demo": ("demo.demo_verb:demo", "Watch a request become a trained model, on this machine."),
        "up": ("stack.up:up", "Run the local stack: Google Cloud's services on this machine."),
        "down": ("stack.down:down", "Stop the local stack that runs on a state folder."),
        "stack": ("stack.stack_verb:stack", "Show the local stack, or change what runs on it."),
    },
    "Deployments": {
        "deploy": ("deploy:deploy", "Deploy to a project, or bring a deployment up to date."),
        "undeploy": ("deploy:undeploy", "Remove a deployment from a project."),
        "doctor": ("doctor:doctor", "Test every part of a deployment; say how to repair it."),
    },
    "This command": {
        "mcp": ("mcp.mcp_verb:mcp", "Serve the verbs as tools of the Model Context Protocol."),
        "context": ("context:context", "Show or choose where the other commands work."),
        "completion": ("completion:completion", "Print the completion script of a shell."),
    },
}
"""By section of `--help`: module and function of each verb, and its line."""
VERBS = {verb: entry for section in SECTIONS.values() for verb, entry in section.items()}


class Verbs(click.Group):
    """Imports a verb's module when the verb is called."""

    def invoke(self, ctx: click.Context) -> object:
        """Here, because click would turn a closed pipe into status 1."""
        try:
            status = super().invoke(ctx)
            sys.stdout.flush()
        except OSError as error:
            end = stop_for_output(error)
            if end is None:
                raise
            if isinstance(end, Stop):
                raise end from error
            return end
        except SystemExit as ended:
            if isinstance(ended.__context__, BrokenPipeError):  # rich ends the process with status 1
                return ExitStatus.CLOSED_PIPE
            raise
        return status

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in VERBS:
            raise click.NoSuchCommand(cmd_name, possibilities=VERBS, ctx=ctx)
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
        widest = max(map(len, VERBS))
        for title, verbs_ in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(widest), line) for name, (_, line) in verbs_.items()])


@click.group("trainmaster", cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, message="trainmaster %(version)s")
def verbs() -> None:
    """Run training jobs on Vertex AI from events, here and in the cloud."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the verb in `arguments`, by default the command line's, and return its exit status."""
    open_standard_streams()
    try:
        status: int = verbs.main(
            arguments, prog_name="trainmaster", standalone_mode=False, complete_var="_TRAINMASTER_COMPLETE"
        )
    except Stop as stop:
        stop.show()
        return stop.status
    except click.ClickException as fault:
        fault.show()
        return fault.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("Stopped.", err=True)
        return ExitStatus.INTERRUPTED
    except Exception as error:
        known = stop_for(error)
        if known is None:
            raise
        known.show()
        return known.status
    return status
