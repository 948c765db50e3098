"""What a checkpoint keeps of callbacks, so that a restarted run stops where an undisturbed one does."""

import json
import math
from typing import Any

import pytest

from trainer.training.callbacks import KeptState, best_epoch_of, finished_epochs_at_best


class Patient:
    """As EarlyStopping: counts epochs, and forgets them as a training begins."""

    def __init__(self, patience: int = 3) -> None:
        self.patience, self.model = patience, object()
        self.on_train_begin()

    def on_train_begin(self) -> None:
        self.wait, self.best, self.stopped = 0, math.inf, False
        self.lowest: float | None = None

    def on_epoch_end(self, loss: float) -> None:
        self.wait, self.best, self.lowest = self.wait + 1, loss, loss


class Progress:
    """Another callback, with nothing to keep."""


def after(losses: list[float], *callbacks: Any, saved: Any = ()) -> list[dict[str, Any]]:
    """What is kept after epochs with these losses, as a checkpoint holds it."""
    kept = KeptState(callbacks, saved)
    for each in callbacks:
        each.on_train_begin()
    kept.begin()
    for loss in losses:
        for each in callbacks:
            each.on_epoch_end(loss)
    found: list[dict[str, Any]] = json.loads(json.dumps(kept.changed_state()))
    return found


def test_a_restarted_callback_continues_with_its_counts() -> None:
    again = Patient()
    saved = after([0.5, 0.4], Patient())
    assert after([0.3], again, saved=saved) == after([0.5, 0.4, 0.3], Patient())
    assert (again.wait, again.best, again.lowest) == (3, 0.3, 0.3)


def test_arguments_of_a_callback_are_not_restored() -> None:
    again = Patient(patience=7)
    after([], again, saved=after([0.5], Patient(patience=3)))
    assert (again.patience, again.wait) == (7, 1)


@pytest.mark.parametrize(
    "before", [[], [Progress()], [Patient(), Patient()]], ids=["none", "another", "more"]
)
def test_a_run_may_continue_with_other_callbacks(before: list[Any]) -> None:
    kept = KeptState(before)
    kept.begin()
    again = Patient()
    after([0.5], again, saved=kept.changed_state())
    assert again.wait == 1


def test_the_best_epoch_of_a_checkpoint_of_an_earlier_release_is_remembered() -> None:
    """Its callback was of a class of that release; the state has the attributes of Keras' EarlyStopping."""
    saved = [{"of": "BestEpoch", "numbers": {"best": 0.9, "best_epoch": 1}}]
    best: Any = best_epoch_of([], ("val_accuracy", True))
    kept = KeptState([best], saved)
    best.on_train_begin()
    kept.begin()
    best.on_epoch_end(3, {"val_accuracy": 0.5})
    assert finished_epochs_at_best(best) == 2
