"""A replica's progress follows its log lines, whatever their order."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from trainmaster.client.logs.progress import ReplicaProgress, TrainingProgress

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


def heard(*payloads: dict[str, Any]) -> TrainingProgress:
    progress = TrainingProgress()
    for payload in payloads:
        progress = progress.after(payload)
    return progress


@given(st.lists(st.integers(1, EPOCHS * STEPS), min_size=1))
def test_steps_never_go_back_when_lines_come_twice_or_late(order: list[int]) -> None:
    chief = heard(*[step_line(done) for done in order]).replicas["chief-0"]
    assert chief.steps_done == max(order)
    assert chief.loss == 1 / max(order)
    assert chief.steps_total == EPOCHS * STEPS


def test_a_replica_is_known_from_its_start_line_before_its_first_step() -> None:
    line = {
        "event": "train_started",
        "replica": "worker-0",
        "epochs": EPOCHS,
        "steps_per_epoch": STEPS,
        "weights": "random",
        "strategy": "MultiWorkerMirroredStrategy",
    }
    progress = heard(line)
    assert progress.replicas["worker-0"] == ReplicaProgress(
        replica="worker-0", epochs=EPOCHS, steps_total=EPOCHS * STEPS
    )
    assert progress.weights == "random"
    assert progress.strategy == "MultiWorkerMirroredStrategy"


def test_a_late_start_line_keeps_the_steps() -> None:
    start = {"event": "train_started", "replica": "chief-0", "epochs": EPOCHS, "steps_per_epoch": STEPS}
    assert heard(step_line(4), start).replicas["chief-0"].steps_done == 4


def test_lines_of_other_programs_change_nothing() -> None:
    before = heard(step_line(2), step_line(3, "worker-0"))
    assert before.after({"event": "something else"}) == before
    assert before.after({"message": "plain"}) == before
