"""The parts that most verbs share: the context to work in, its clients, options, and printed results."""

import functools
import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click

from trainmaster.cli.exits import ExitStatus, stop_for
from trainmaster.client.clients import Clients
from trainmaster.client.context import (
    TEAM_VARIABLE,
    VARIABLE,
    Context,
    NoContext,
    choose_context,
    context_in_cloud,
    context_of_state,
    kept_choice,
    refuse_elsewhere,
    settings_folder,
)
from trainmaster.orchestrator.core.deployment_names import DEPLOYMENT_FORM, is_deployment_name
from trainstack.find import own_state

LOCAL_PROJECT, LOCAL_REGION = "trainmaster-local", "us-central1"
"""Those of `trainmaster up` without options."""
T = TypeVar("T")
Verb = TypeVar("Verb", bound=Callable[..., Any])  # Any: a verb, or click's command of one
TABLE, JSON, YAML, NAME, TEXT = "table", "json", "yaml", "name", "text"


def context_of(name: str | None, *, named_by: str = "--context", changes: bool = False) -> Context:
    """The context that the option, the environment, the kept choice or a running stack chooses.

    Args:
        name: what the option says.
        named_by: the option.
        changes: whether it is chosen to be changed: then never another folder's stack because it is the only one.

    Raises:
        NoContext, UnknownContext: as `choose_context`, or `refuse_elsewhere`.
    """
    chosen = choose_context(
        name, os.environ, directory=Path.cwd(), settings=settings_folder(), named_by=named_by
    )
    if changes:
        refuse_elsewhere(chosen)
    return replace(chosen, team=chosen_team())


def context_or_names(name: str | None, *, asks: bool) -> tuple[Context, bool]:
    """Where a file would be sent to, and whether a service there may be asked.

    Where nothing is chosen, only this folder's stack counts: the answer does not depend on what runs elsewhere. If none
    runs, the names are those of the stack that last ran here, else those that `trainmaster up` would start with.

    Args:
        name: what the option says.
        asks: whether a service would be asked: then a chosen stack must run.

    Raises:
        NoContext, UnknownContext: as `choose_context`, for a context that is chosen.
    """
    settings, state = settings_folder(), None
    is_chosen = bool(name or os.environ.get(VARIABLE) or kept_choice(settings))
    try:
        if not (found := context_of(name)).is_elsewhere:
            return found, asks
    except NoContext as absent:
        if is_chosen and (asks or name is not None):
            raise
        state = absent.state if is_chosen else None
    state = state or own_state(Path.cwd(), settings)
    names = None if state is None else context_of_state(state)
    by = "the names of a new local stack" if names is None else f"the names of the stack on {str(state)!r}"
    found = replace(names or context_in_cloud(LOCAL_PROJECT, LOCAL_REGION), state=None, chosen_by=by)
    return replace(found, team=chosen_team()), False


def chosen_team() -> str | None:
    """The team of `--team`, or else of the variable TRAINMASTER_TEAM; None without either."""
    call = click.get_current_context(silent=True)
    named: str | None = call.meta.get(TEAM_VARIABLE) if call is not None else None
    return named or os.environ.get(TEAM_VARIABLE) or None


class DeploymentName(click.ParamType):  # type: ignore[type-arg]  # older versions of click have no generic one
    """The name of a deployment; empty for the one without a name."""

    name = "NAME"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The value itself, if it is such a name."""
        if value and not is_deployment_name(value):
            self.fail(f"{value!r} is not the name of a deployment: expected {DEPLOYMENT_FORM}.", param, ctx)
        return value


name_option = click.option(
    "--name", type=DeploymentName(), default="", help="the deployment's, if it has one"
)
context_option = click.option(
    "--context",
    metavar="NAME",
    help="local[/NAME], local[/NAME]:DIR or PROJECT/REGION[/NAME]; default: the current one",
)
takes_include = click.option(
    "--include",
    multiple=True,
    metavar="PATH",
    help="pack this file of the script's folder though it seems to hold a secret, or is a link to a file that is not packed; repeatable",
)
"""Gives a verb `--include`, the paths of files that are packed with a script in spite of a doubt."""


def takes_team(verb: Verb) -> Verb:
    """Give the verb `--team`, which `chosen_team` returns."""

    def keep(call: click.Context, _: click.Parameter, team: str | None) -> None:
        call.meta[TEAM_VARIABLE] = team

    return click.option(
        "--team",
        metavar="NAME",
        expose_value=False,
        callback=keep,
        help=f"your team, in a deployment with several; default: {TEAM_VARIABLE}",
    )(verb)


def takes_context(verb: Callable[..., int]) -> Callable[..., int]:
    """Give a verb that only reads `--context` and `--verbose`, and its first argument: the `Clients` of the chosen context."""
    return _with_context(verb, changes=False)


def takes_context_to_change(verb: Callable[..., int]) -> Callable[..., int]:
    """As `takes_context`, for a verb that changes something: never in another folder's stack that nothing has chosen."""
    return _with_context(verb, changes=True)


def _with_context(verb: Callable[..., int], *, changes: bool) -> Callable[..., int]:
    @context_option
    @click.option("--verbose", is_flag=True, help="say where, and how many storage operations it took")
    @functools.wraps(verb)
    def run(
        *arguments: Any, context: str | None, verbose: bool, **options: Any
    ) -> int:  # Any: the verb's own
        from trainmaster.client.clients import Clients

        chosen = context_of(context, changes=changes)
        if verbose or chosen.is_elsewhere:
            talk(f"In {chosen.title}, {chosen.chosen_by}.")
        with Clients(chosen, note=talk) as clients:
            try:
                status = verb(clients, *arguments, **options)
            except Exception as error:
                if (end := stop_for(error)) is not None and end.status is ExitStatus.UNREACHABLE:
                    from trainmaster.client.logs.survive import check_stack

                    check_stack(chosen)
                raise
            if verbose:
                talk(f"Storage operations: {clients.storage_calls}.")
        return status

    return run


def says_where(clients: Clients, what: str) -> None:
    """Announce a change and where it happens, before it is made."""
    talk(f"{what} in {clients.context.title}.")


def confirm_removal(question: str, what: str, *, yes: bool) -> None:
    """Ask before anything is removed. `what`: needs --yes where no one can be asked."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError(f"{what} needs --yes where no one can be asked.")
    click.confirm(question, abort=True, err=True)


def output_option(*formats: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """The option `-o`, as `output`; the first format is the default, and all but TEXT those without any."""
    choices = formats or (TABLE, JSON, YAML, NAME)
    return click.option(
        "-o",
        "--output",
        type=click.Choice(choices),
        default=choices[0],
        show_default=True,
        help="how to print",
    )


def _refuse_nan(_call: click.Context, _option: click.Parameter, seconds: float) -> float:
    if math.isnan(seconds):
        raise click.BadParameter("nan is no number of seconds.")
    return seconds


def wait_option(default_s: float, help_text: str) -> Callable[[Verb], Verb]:
    """The option `--wait-s`, as `wait_s`."""
    return click.option(
        "--wait-s",
        type=click.FloatRange(min=0),
        callback=_refuse_nan,
        default=default_s,
        show_default=True,
        metavar="S",
        help=help_text,
    )


def moment_option(name: str, help_text: str, default: str | None = None) -> Callable[[Verb], Verb]:
    """An option that names a moment in the past, as a time."""

    def parse(text: str) -> datetime:
        from trainmaster.client.times import parse_since

        return parse_since(text, datetime.now(UTC))

    callback = parsed_with(parse)
    return click.option(
        name, metavar="TIME", default=default, show_default=True, callback=callback, help=help_text
    )


def parsed_with(
    parse: Callable[[str], T],
) -> Callable[[click.Context, click.Parameter, str | None], T | None]:
    """The callback of an option whose text this function reads; what it refuses, by a ValueError, is wrong usage."""

    def read(_call: click.Context, _option: click.Parameter, text: str | None) -> T | None:
        try:
            return None if text is None else parse(text)
        except ValueError as error:
            raise click.BadParameter(str(error)) from error

    return read


def print_data(document: Mapping[str, Any] | list[Any], output: str) -> None:
    """Print JSON or YAML on standard output."""
    if output == YAML:
        from trainmaster.cli.yaml_text import yaml_text

        click.echo(yaml_text(document), nl=False)
        return
    click.echo(json.dumps(document, indent=2, ensure_ascii=False))


def print_for_programs(
    output: str, document: Callable[[], Mapping[str, Any] | list[Any]], names: Iterable[str] = ()
) -> bool:
    """Print the document or the names, if `-o` asks for these; False if it asks for the verb's screen."""
    if output == NAME:
        print_names(names)
    elif output in (JSON, YAML):
        print_data(document(), output)
    return output in (NAME, JSON, YAML)


def print_names(names: Iterable[str]) -> None:
    """Print one name a line on standard output."""
    for name in names:
        click.echo(name)


def talk(message: str) -> None:
    """Say something beside the data: on standard error."""
    click.echo(message, err=True)
