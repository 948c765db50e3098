"""A replica's progress follows its log lines, whatever their order."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.client.test_lanes import CHIEF, at, line
from trainmaster.client.logs.progress import LONGEST_S, ReplicaProgress, TrainingProgress

EPOCHS, STEPS = 3, 7


def step_line(done: int, replica: str = "chief-0") -> dict[str, Any]:
    epoch, step = divmod(done - 1, STEPS)
    return {
        "event": "train_progress",
        "replica": replica,
        "epoch": epoch + 1,
        "epochs": EPOCHS,
        "step": step + 1,
        "steps_per_epoch": STEPS,
        "loss": 1 / done,
        "accuracy": 0.5,
        "examples_per_s": 10.0,
    }


def progress_after(*payloads: str | dict[str, Any]) -> ReplicaProgress:
    """Of the one replica, after lines that are a second apart."""
    training = TrainingProgress()
    for second, payload in enumerate(payloads):
        training = training.after(line(second, payload))
    return training.replicas[CHIEF]


@given(st.lists(st.integers(1, EPOCHS * STEPS), min_size=1))
def test_steps_never_go_back_when_lines_come_twice_or_late(order: list[int]) -> None:
    chief = progress_after(*[step_line(done) for done in order])
    assert chief.steps_done == max(order)
    assert chief.metrics["loss"] == 1 / max(order)
    assert chief.steps_total == EPOCHS * STEPS


def test_the_bar_of_the_trainer_says_how_much_of_all_epochs_is_done() -> None:
    def printed(step: int, epoch: float) -> list[str]:
        return [f" {step // 3}%|█ | {step}/300 [00:01<00:09, 2.9it/s]", f"{{'loss': 0.5, 'epoch': {epoch}}}"]

    chief = progress_after(*printed(50, 0.5), " 40%|█ | 4/10 [00:01<00:09]", "{'eval_loss': 1, 'epoch': 1.0}")
    assert (chief.epochs, chief.share) == (3, 1 / 3)
    assert progress_after(*printed(50, 0.5), *printed(150, 1.5)).share == 0.5
    of_epoch = ("50%|█ | 5/10 [00:01<00:09, 2.9it/s]", "{'loss': 0.5, 'epoch': 1}")
    assert progress_after(*of_epoch).share is None


def test_a_replica_is_known_from_its_start_line_before_its_first_step() -> None:
    start = {
        "event": "train_started",
        "replica": "worker-0",
        "epochs": EPOCHS,
        "steps_per_epoch": STEPS,
        "weights": "random",
        "strategy": "MultiWorkerMirroredStrategy",
    }
    training = TrainingProgress().after(line(1, start))
    chief = training.replicas[CHIEF]
    assert (chief.replica, chief.steps_done, chief.steps_total) == ("worker-0", 0, EPOCHS * STEPS)
    assert (training.weights, training.strategy) == ("random", "MultiWorkerMirroredStrategy")


def test_a_late_start_line_keeps_the_steps() -> None:
    start = {"event": "train_started", "replica": "chief-0", "epochs": EPOCHS, "steps_per_epoch": STEPS}
    assert progress_after(step_line(4), start).steps_done == 4


def test_lines_of_other_programs_change_nothing() -> None:
    before = TrainingProgress().after(line(1, step_line(2)))
    for other in ({"event": "something else"}, {"message": "plain"}, "Copied 3/5 files - done: yes"):
        assert before.after(line(2, other)) == before


def test_lines_of_keras_are_in_the_epoch_that_the_line_before_began() -> None:
    chief = progress_after("Epoch 1/4", "5/10 - loss: 0.9", "10/10 - loss: 0.8 - val_loss: 0.7", "Epoch 2/4")
    assert (chief.steps_done, chief.steps_total, chief.share) == (10, 40, 0.25)
    assert chief.metrics == {"loss": 0.8, "val_loss": 0.7}


def test_epochs_alone_give_a_share_and_a_pace() -> None:
    lines = [{"event": "train_progress", "epoch": epoch, "epochs": 10} for epoch in (1, 2, 3, 4)]
    chief = progress_after(*lines)
    assert chief.share == 0.4
    assert chief.end == at(3 + 6)
    assert progress_after(lines[0]).end is None
    assert progress_after("Epoch 1/4", "Epoch 2/4").share == 0.25


def test_a_pace_that_is_hardly_one_ends_in_ten_years() -> None:
    crawling = [{"step": step, "steps_per_epoch": 10**15, "epoch": 1, "epochs": 1} for step in (1, 2)]
    assert progress_after(*crawling).end == at(1 + LONGEST_S)
