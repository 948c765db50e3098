"""`trainmaster up`: runs the local stack."""

import logging
import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from trainmaster.cli.exits import stop_for
from trainmaster.cli.stack.console import OFF, READ, WRITE, announced_console
from trainmaster.cli.stack.options import images_by_uri
from trainmaster.cli.submit.first_commands import first_commands
from trainmaster.cli.verb import DeploymentName
from trainmaster.client.context import settings_folder
from trainmaster.partial_import import VERTEX_CLIENT, import_parts_of
from trainmaster.resources import TOPOLOGY
from trainstack.find import DEFAULT_STATE

if TYPE_CHECKING:
    from trainstack.stack.options import StackOptions
    from trainstack.stack.state import StateFolder
    from trainstack.stack.topology import Topology

_WORDS = f"{__name__}.words"
_file_option = partial(click.option, type=Path, metavar="FILE")
_seconds_option = partial(click.option, type=float, metavar="S")


class _KeepsWords(click.Command):
    """Keeps the words of the command line, for the process that `--detach` starts."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As every command, with the words in the context's `meta`."""
        ctx.meta[_WORDS] = list(args)
        return super().parse_args(ctx, args)


@click.command(cls=_KeepsWords)
@click.option("--detach", is_flag=True, help="return when the stack is ready, and leave it running")
@click.option(
    "--state", type=Path, default=DEFAULT_STATE, show_default=True, metavar="DIR", help="the stack's folder"
)
@click.option(
    "--image",
    "images",
    callback=images_by_uri,
    multiple=True,
    metavar="URI=DIR",
    help="an image and the source tree with a Dockerfile that provides it, now and at later starts; repeatable",
)
@click.option(
    "--functions", type=Path, metavar="DIR", help="the staged functions; default: staged at each start"
)
@_file_option("--topology", help="the project's resources; default: those of a deployment")
@_file_option("--policy", help="what requests may ask for; default: this version's policy")
@click.option(
    "--project", default="trainmaster-local", show_default=True, metavar="ID", help="the project's id"
)
@click.option("--region", default="us-central1", show_default=True, help="the region")
@click.option(
    "--name",
    type=DeploymentName(),
    multiple=True,
    help="run a deployment of this name, too, which --context local/NAME chooses; repeatable",
)
@click.option(
    "--port-base",
    type=int,
    metavar="PORT",
    help="the first of five ports; default: the last stack's if they are free",
)
@click.option(
    "--isolation",
    type=click.Choice(["enforced", "none"]),
    default="enforced",
    show_default=True,
    envvar="TRAINMASTER_ISOLATION",
    show_envvar=True,
    help="whether jobs and functions are refused what their accounts have no permission for, and jobs are kept from this machine",
)
@click.option(
    "--runtime",
    type=click.Choice(["process", "container"]),
    default="process",
    show_default=True,
    help="run replicas as processes, or as podman containers of their built images",
)
@click.option(
    "--registry", is_flag=True, help="also run an image registry, which notifies the topic gcr of every push"
)
@click.option(
    "--capacity", type=int, metavar="N", help="most replicas that run at once; default: four per processor"
)
@_seconds_option(
    "--grace-s",
    default=5.0,
    help="seconds from SIGTERM to SIGKILL for a replica; default 5, on Google Cloud 30",
)
@_seconds_option(
    "--retry-min-s",
    default=1.0,
    help="shortest pause before an event is redelivered; default 1, on Google Cloud 10",
)
@_seconds_option(
    "--retry-max-s",
    default=60.0,
    help="longest pause before an event is redelivered; default 60, on Google Cloud 600",
)
@_file_option(
    "--injections",
    help="faults to inject into the services, JSON or YAML; see docs/reference/local-faults.md",
)
@_file_option("--quota", help="each region's quotas for jobs, JSON or YAML; default: no limits")
@click.option(
    "--console",
    type=click.Choice([WRITE, READ, OFF]),
    default=WRITE,
    show_default=True,
    help="serve pages about the stack that can change it, that only show it, or none",
)
@_seconds_option("--tick-s", help="tick every S seconds instead of by the schedules")
@click.pass_context
def up(
    call: click.Context, /, *, detach: bool, console: str, **given: Any
) -> int:  # Any: click's values, of the types above
    """Run the local stack: Google Cloud's services on this machine.

    The first line is the address of the console, which shows the stack in a browser. In the foreground the stack prints a
    line for each change of a run, and Ctrl-C stops it; a stack with --detach is stopped by trainmaster down, and prints
    the lines into stack.log of its folder.

    Exit status: 0 stopped or detached, 1 it could not start, 2 wrong usage.
    """
    # Otherwise grpc's core logs every connection that a stop closes to the terminal; it reads this at import.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    import_parts_of(*VERTEX_CLIENT)  # the services need Vertex AI's messages, and none of its clients
    from trainmaster.cli.stack.product import read_topologies, with_policy
    from trainstack.stack.state import StateFolder, owner_of, refuse_other_project

    options = _options(given)
    options.check()
    path, project, region = given["topology"] or TOPOLOGY, options.project, options.region
    topologies = read_topologies(path, given["name"], project=project, region=region)
    if given["policy"]:
        topologies = [with_policy(each, given["policy"]) for each in topologies]
    if owner_of(options.state) is None:
        refuse_other_project(options.state, options.project, options.region)
    if detach:
        from trainmaster.cli.stack.detach import detach_stack

        words = [word for word in call.meta[_WORDS] if word != "--detach"]
        return detach_stack(options.state, words, given["name"])
    return _run(options, topologies, StateFolder(options.state), console, given["name"])


def _run(
    options: "StackOptions",
    topologies: list["Topology"],
    state: "StateFolder",
    access: str,
    names: Sequence[str],
) -> NoReturn:
    """Run the stack, and end this process: nothing is left to clean up, and Python takes a second to unload libraries."""
    from trainstack.stack.errors import StackRefusedError

    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    status = 0
    try:
        console = announced_console(access, options, state)
        from trainmaster.cli.stack.product import product_of, with_secrets
        from trainstack.stack.stack import run_until_stopped

        topologies = [with_secrets(each, options.state) for each in topologies]
        run_until_stopped(
            options,
            topologies[0],
            state,
            settings=settings_folder(),
            product=product_of(topologies, options.functions, welcome=welcome_text(options.state, names)),
            beside=topologies[1:],
            console=console,
        )
        _say_unfinished(options.state, topologies[0].buckets.get("ledger", ""))
    except StackRefusedError as refusal:
        stop = stop_for(refusal)
        status = stop.status if stop else 1
        click.echo(str(refusal), err=True)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _say_unfinished(state: Path, ledger: str) -> None:
    from trainmaster.cli.stack.down import of_unfinished, unfinished_runs

    if runs := unfinished_runs(state, ledger):
        with suppress(OSError):  # a closed terminal
            click.echo(of_unfinished(runs, state), err=True)


def welcome_text(state: Path, names: Sequence[str] = ()) -> str:
    """What to do next with a stack on `state` in the foreground, which is ready; `names` of further deployments."""
    first = ", then ".join(command for _, command in first_commands(Path.cwd()))
    of_state = "" if state == DEFAULT_STATE else f" --state {shlex.quote(str(state))}"
    beside = "".join(f"The deployment {name}: --context local/{name}. " for name in names)
    return (
        f"The local stack is ready. In another shell: {first}. {beside}"
        f"Ctrl-C here, or trainmaster down{of_state}, stops the stack."
    )


def _options(given: dict[str, Any]) -> "StackOptions":
    from trainstack.events.backoff import Backoff
    from trainstack.injections import InjectionPlan
    from trainstack.stack.options import StackOptions, injections_of, quota_of

    chosen = given | {
        "backoff": Backoff(min_s=given["retry_min_s"], max_s=given["retry_max_s"]),
        "injections": injections_of(given["injections"]) if given["injections"] else InjectionPlan(),
        "quota": quota_of(given["quota"]) if given["quota"] else (),
    }
    return StackOptions(**{field.name: chosen[field.name] for field in fields(StackOptions)})
