"""What `survive.run` takes as callbacks, and how it refuses anything else."""

from typing import Any

import pytest

from trainer import survive
from trainer.faults import Unusable
from trainer.training.callbacks import callbacks_from


class Stop:
    """A callback by its methods, as of either Keras."""

    def on_epoch_end(self, epoch: int, logs: object) -> None: ...


STOP = Stop()


@pytest.mark.parametrize(
    "given", [[STOP], (STOP,), lambda: [STOP], lambda stop=STOP: (stop,), STOP, lambda: STOP]
)
def test_a_list_one_callback_or_a_function_that_returns_them_is_taken(given: Any) -> None:
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


def test_a_program_with_wrong_callbacks_ends_with_2_and_a_sentence_before_its_data_is_loaded(
    capsys: pytest.CaptureFixture[str],
) -> None:
    data = survive.Examples(lambda: pytest.fail("loaded"))
    with pytest.raises(SystemExit) as ended:
        survive.run(lambda: None, data, callbacks=7, environment={})  # type: ignore[arg-type]  # the user's mistake
    assert ended.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("callbacks: expected a list")
