"""What `survive.run` takes as callbacks, and how it refuses anything else."""

import subprocess
import sys
from typing import Any

import pytest

from tests.trainer.conftest import ROOT
from trainer.faults import Unusable
from trainer.survive import callbacks_from


class Stop:
    """A callback by its methods, as of either Keras."""

    def on_epoch_end(self, epoch: int, logs: object) -> None: ...


STOP = Stop()


@pytest.mark.parametrize(
    "given", [[STOP], (STOP,), lambda: [STOP], lambda stop=STOP: (stop,)], ids=["list", "tuple", "function", "default"]
)  # fmt: skip
def test_a_list_or_a_function_that_returns_one_is_taken(given: Any) -> None:
    assert list(callbacks_from(given)()) == [STOP]


@pytest.mark.parametrize("given", [STOP, lambda: STOP], ids=["itself", "function"])
def test_one_callback_is_taken_as_a_list_of_it(given: Any) -> None:
    assert list(callbacks_from(given)()) == [STOP]


@pytest.mark.parametrize("given", [None, [], ()])
def test_nothing_is_taken_as_no_callbacks(given: Any) -> None:
    assert list(callbacks_from(given)()) == []


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (Stop, f"; found {Stop!r}."),
        ([Stop], f"; found {Stop!r}."),
        ([STOP, "stop"], "; found 'stop'."),
        (lambda run: [run], "; the function is missing a required argument: 'run'."),
        (7, "; found 7."),
    ],
)
def test_anything_else_is_refused_with_what_was_found(given: Any, found: str) -> None:
    with pytest.raises(Unusable) as caught:
        callbacks_from(given)
    assert str(caught.value) == (
        "callbacks: expected a list of Keras callbacks, or a function without arguments that returns one"
        + found
    )


def test_what_a_function_returns_is_checked() -> None:
    with pytest.raises(Unusable, match="found 'stop'"):
        callbacks_from(lambda: [STOP, "stop"])()


def ended(*lines: str) -> tuple[int, str]:
    """The exit status and standard error of a program with these lines."""
    program = "\n".join(["import sys", "from trainer import survive", *lines])
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stderr


def test_a_program_with_wrong_callbacks_ends_with_2_and_a_sentence_before_its_data_is_loaded() -> None:
    status, said = ended(
        "data = survive.Examples(lambda: sys.exit('loaded'))", "survive.run(lambda: None, data, callbacks=7)"
    )
    assert status == 2
    assert said.startswith("callbacks: expected a list")
    assert len(said.splitlines()) == 1


def test_a_program_with_wrong_flags_ends_as_with_argparse() -> None:
    status, said = ended("survive.settings_from(['--epoch=3', '--seed=x'], prog='program.py')")
    assert status == 2
    assert said.splitlines() == [
        "usage: program.py [--name=value …]",
        "program.py: error: Unknown flag '--epoch'. Did you mean 'epochs'? `program.py --help` lists all flags.",
        "program.py: error: --seed=x: expected a whole number from 0 to 2147483647; found 'x'.",
    ]
