"""Ctrl-C prints once what the service continues to do, and ends the command with the status of an interrupted program."""

from contextlib import AbstractContextManager

import click
import pytest

from trainmaster.cli.exits import ExitStatus
from trainmaster.cli.runs.following import order_survives_interrupt, run_survives_interrupt


@pytest.mark.parametrize(
    ("block", "said"),
    [
        (
            run_survives_interrupt("a"),
            ["Stopped following. The run continues:", "  trainmaster status a", "  trainmaster cancel a"],
        ),
        (
            order_survives_interrupt("trainmaster champions show m"),
            [
                "Stopped waiting. An order that was sent is carried out all the same. See: trainmaster champions show m"
            ],
        ),
    ],
)
def test_an_interrupted_wait_says_what_continues_and_how_to_see_it(
    block: AbstractContextManager[None], said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command()
    def verb() -> None:
        with block:
            raise KeyboardInterrupt

    assert verb.main([], standalone_mode=False) == ExitStatus.INTERRUPTED
    assert capsys.readouterr().err.splitlines() == ["", *said]
