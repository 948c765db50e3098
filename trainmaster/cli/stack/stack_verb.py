"""`trainmaster stack`: what only the local stack has."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from trainmaster.cli.exits import ExitStatus, Stop
from trainmaster.cli.stack.options import chosen_state_option, images_by_uri
from trainmaster.client.context import settings_folder
from trainstack.find import NoStack, environment_on, is_state, running_stacks, start_command

CHIEF = "workerpool0-0"
_NOT_FOUND = 404


@click.group()
def stack() -> None:
    """Show the local stack, or change what runs on it."""


@stack.command(short_help="Print a stack's variables and process.")
@chosen_state_option
def status(state: Path) -> int:
    """Print the variables of the stack that runs on a state folder, and its process.

    Exit status: 0 a stack runs, 4 none does.
    """
    from trainstack.stack.state import owner_of

    owner = owner_of(state)
    if owner is None:
        raise NoStack(f"No stack is running on {str(state)!r}. Start one: {start_command(state)}")
    if (env_path := state / "stack.env").exists():
        click.echo(f"# ready, process {owner}\n{env_path.read_text()}", nl=False)
    else:
        click.echo(f"# starting or stopping, process {owner}")
    return 0


class ForEval(click.Command):
    """Prints `false` where it fails, so that `eval "$(…)" && next` ends there."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,  # Any: click's
    ) -> click.Context:
        """Also where the stack cannot be chosen."""
        with _false_on_failure():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:  # Any: click's
        """Also where the stack is not ready."""
        with _false_on_failure():
            return super().invoke(ctx)


@contextmanager
def _false_on_failure() -> Iterator[None]:
    try:
        yield
    except click.exceptions.Exit:  # of --help
        raise
    except Exception:
        click.echo("false")
        raise


@stack.command(cls=ForEval, short_help="Print the variables that make gcloud use the stack.")
@click.option(
    "--gateway",
    is_flag=True,
    help="also those for programs that use Google's default endpoints, as in a local job",
)
@chosen_state_option
def env(gateway: bool, state: Path) -> int:
    """Print the variables that make gcloud use the stack, for a shell's eval.

    Without a stack it prints false, so that the eval fails too.

    Exit status: 0 printed, 4 no stack is ready.
    """
    from trainstack.stack.state import NOT_THROUGH_GATEWAY, client_variables_path

    environment_on(state)
    kinds = ["gcloud", *(["gateway"] if gateway else [])]
    paths = [state / "stack.env", *(client_variables_path(state, kind) for kind in kinds)]
    click.echo("".join(path.read_text() for path in paths), nl=False)
    if gateway:
        click.echo(f"unset {' '.join(NOT_THROUGH_GATEWAY)}")
    return 0


@stack.command(short_help="Provide images by source trees.")
@click.argument("images", callback=images_by_uri, metavar="URI=DIR...", nargs=-1, required=True)
@chosen_state_option
def provide(images: dict[str, Path], state: Path) -> int:
    """Provide images by source trees, starting with the next job, also while the stack runs.

    URI=DIR is an image, and a folder with its Dockerfile. Exit status: 0 done, 1 the state folder cannot be written, 2
    wrong usage.
    """
    from trainstack.stack.errors import BadOptionsError
    from trainstack.stack.options import image_faults
    from trainstack.stack.state import provide

    if faults := [*image_faults(images), *_place_faults(state)]:
        raise BadOptionsError("\n".join(faults))
    provide(state, images)
    for uri, tree in images.items():
        click.echo(f"{tree.resolve()} provides the image {uri}, starting with the next job.")
    return 0


def _place_faults(state: Path) -> Iterator[str]:
    """No stack has run on the folder, which no option names, and others run: theirs is most likely meant."""
    is_named = (
        click.get_current_context().get_parameter_source("state") is click.core.ParameterSource.COMMANDLINE
    )
    others = [] if is_named or is_state(state) else running_stacks(Path.cwd(), settings_folder())
    if others:
        running = ", ".join(shlex.quote(str(other)) for other in others)
        yield f"No stack has run on {str(state)!r}. For a stack that runs now: --state {running}"


@stack.command(short_help="Take the machine of a running job's replica away.")
@click.argument("job")
@click.argument("replica", default=CHIEF)
@chosen_state_option
def preempt(job: str, replica: str, state: Path) -> int:
    """Take the machine of a running job's replica away.

    JOB is a custom job's id, or its full name; REPLICA is named as in the job's log, by default the chief,
    workerpool0-0. Exit status: 0 SIGTERM was sent, 2 refused, 3 there is no such job, 4 no stack is ready.
    """
    from trainmaster.orchestrator.core.job_names import JobKind, is_job_name, job_name

    variables = environment_on(state)
    project, region = variables["GOOGLE_CLOUD_PROJECT"], variables["TRAINMASTER_REGION"]
    is_name = is_job_name(job, JobKind.CUSTOM)
    name = job if is_name else job_name(project, region, JobKind.CUSTOM, job)
    path = f"/emulator/v1/{name}:preempt"
    _call(state, "POST", variables["VERTEX_EMULATOR_HOST"], path, {"replica": replica})
    click.echo(f"Preempting replica {replica} of job {job}: SIGTERM was sent.")
    return 0


@stack.command(short_help="Play a schedule of quotas, queues and stockouts.")
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--stop", "stops", is_flag=True, help="end the weather that plays")
@chosen_state_option
def weather(file: Path | None, stops: bool, state: Path) -> int:
    """Play a schedule of quotas, queues and stockouts on the jobs of a running stack, or show how far it is.

    FILE is YAML or JSON; its entries become injections when their time comes. Exit status: 0 done, 2 a faulty file or
    wrong usage, 4 no stack is ready.
    """
    from trainstack.stack.options import weather_of

    if file is not None and stops:
        raise click.UsageError("Give a FILE or --stop.")
    document = None if file is None else weather_of(file)
    method = "DELETE" if stops else "GET" if file is None else "PUT"
    address = environment_on(state)["VERTEX_EMULATOR_HOST"]
    now = _call(state, method, address, "/emulator/v1/weather", document)
    if not now:
        click.echo("No weather plays.")
        return 0
    hours, of_hours = now["now_s"] / 3600, now["length_s"] / 3600
    active = ", ".join(now["active"]) or "none"
    click.echo(f"Hour {hours:.1f} of {of_hours:.1f}; active of {now['entries']} entries: {active}.")
    return 0


def _call(state: Path, method: str, address: str, path: str, body: object) -> Any:  # Any: JSON
    """The answer of the stack's own call. Raises `Stop` if it is refused, `NoStack` if nothing answers."""
    from trainstack.events.rest import CallRefusedError, call

    try:
        return call(method, address, path, body)
    except CallRefusedError as refused:
        raise Stop(
            ExitStatus.NOT_FOUND if refused.status == _NOT_FOUND else ExitStatus.USAGE, refused.reason
        ) from refused
    except OSError as error:
        raise NoStack(f"The stack on {str(state)!r} does not answer: {error}.") from error
