"""Where a run resumes after a checkpoint, and what replicas agree on, as values."""

from typing import Any

import pytest

from trainer.checkpoints.files import Checkpoint, TrainingPosition, position_after

STEPS, BATCH = 10, 8


@pytest.mark.parametrize(
    ("saved", "expected"),
    [
        (None, TrainingPosition(epoch=0, step=0)),
        ({"epoch": 2, "step": 7}, TrainingPosition(epoch=2, step=7)),
        ({"epoch": 2, "metrics": {"loss": 1.0}}, TrainingPosition(epoch=2, step=0)),
        ({"epoch": 2}, TrainingPosition(epoch=1, step=STEPS)),
        ({"epoch": 0}, TrainingPosition(epoch=0, step=0)),
        ({"epoch": 1, "step": 6, "global_batch_size": 4}, TrainingPosition(epoch=1, step=3)),
        ({"epoch": 1, "step": 6, "global_batch_size": 6}, TrainingPosition(epoch=1, step=5)),
        ({"epoch": 1, "step": 6, "global_batch_size": 16}, TrainingPosition(epoch=1, step=STEPS)),
    ],
    ids=[
        "no checkpoint", "within an epoch", "evaluated", "only the evaluation is left", "nothing to evaluate",
        "half the batch", "examples of a part of a step", "twice the batch",
    ],
)  # fmt: skip
def test_a_run_continues_behind_the_examples_that_were_seen(saved: Any, expected: TrainingPosition) -> None:
    checkpoint = saved and Checkpoint(**{"path": "/ckpt-1", "step": 0, "global_batch_size": BATCH, **saved})
    assert position_after(checkpoint, steps_per_epoch=STEPS, global_batch_size=BATCH) == expected
