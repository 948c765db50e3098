"""The options that the verbs of the local stack share: its state folder, and images by source tree."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from trainstack.find import DEFAULT_STATE, nearest_state, state_of


def _state_or(default: str, choose: Callable[[], Path]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def given_or_chosen(_call: click.Context, _option: click.Parameter, state: Path | None) -> Path:
        return state or choose()

    help_text = f"the stack's folder; default: {default}"
    return click.option("--state", type=Path, callback=given_or_chosen, metavar="DIR", help=help_text)


def _chosen_state() -> Path:
    from trainmaster.cli.verb import context_of
    from trainmaster.client.context import VARIABLE, kept_choice, settings_folder

    is_chosen = os.environ.get(VARIABLE) or kept_choice(settings_folder())
    return (context_of(None).state if is_chosen else None) or state_of(Path.cwd(), settings_folder())


nearest_state_option = _state_or(
    f"{DEFAULT_STATE} here, else in the nearest parent that has one",
    lambda: nearest_state(Path.cwd()) or DEFAULT_STATE,
)
"""The option `--state`, as `state`: by default that of the folder, else of the nearest parent that has one."""
chosen_state_option = _state_or(
    f"the stack that TRAINMASTER_CONTEXT or context use chose, else {DEFAULT_STATE} here or in the nearest parent that has one",
    _chosen_state,
)
"""The option `--state`, as `state`: by default the stack that the variable or `context use` chose, else the folder's."""


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
