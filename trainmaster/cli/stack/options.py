"""The options that the verbs of the local stack share: its state folder, and images by source tree."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from trainstack.find import DEFAULT_STATE, nearest_state, state_of


def state_option(verb: Callable[..., Any]) -> Callable[..., Any]:  # Any: click's callback
    """The option `--state`, as `state`."""
    option = click.option(
        "--state",
        type=Path,
        default=DEFAULT_STATE,
        show_default=True,
        metavar="DIR",
        help="the stack's folder",
    )
    return option(verb)


def nearest_state_option(verb: Callable[..., Any]) -> Callable[..., Any]:  # Any: click's callback
    """The option `--state`, as `state`: by default that of the folder, else of the nearest parent that has one."""

    def nearest(_call: click.Context, _option: click.Parameter, state: Path | None) -> Path:
        return state or nearest_state(Path.cwd()) or DEFAULT_STATE

    return click.option(
        "--state",
        type=Path,
        callback=nearest,
        metavar="DIR",
        help=f"the stack's folder; default: {DEFAULT_STATE} here, else in the nearest parent that has one",
    )(verb)


def chosen_state_option(verb: Callable[..., Any]) -> Callable[..., Any]:  # Any: click's callback
    """The option `--state`, as `state`: by default the stack that the variable or `context use` chose, else the folder's."""

    def choose_state(_call: click.Context, _option: click.Parameter, state: Path | None) -> Path:
        from trainmaster.cli.verb import context_of, settings_folder
        from trainmaster.client.context import VARIABLE, kept_choice

        if state is None and (os.environ.get(VARIABLE) or kept_choice(settings_folder())):
            state = context_of(None).state
        return state or state_of(Path.cwd(), settings_folder())

    return click.option(
        "--state",
        type=Path,
        callback=choose_state,
        metavar="DIR",
        help=f"the stack's folder; default: the stack that TRAINMASTER_CONTEXT or context use chose, else {DEFAULT_STATE} "
        "here or in the nearest parent that has one",
    )(verb)


def images_by_uri(
    _context: click.Context, _parameter: click.Parameter, texts: tuple[str, ...]
) -> dict[str, Path]:
    """The source trees of images, from words URI=DIR; the folders need not exist.

    Raises:
        click.BadParameter: a word has another form.
    """
    found: dict[str, Path] = {}
    for text in texts:
        uri, equals, directory = text.partition("=")
        if not (uri and equals and directory):
            raise click.BadParameter(
                f"expected URI=DIR, found {text!r}; for example: example/trainer=./trainer"
            )
        found[uri] = Path(directory)
    return found
