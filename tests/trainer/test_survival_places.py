"""Where a run resumes after a checkpoint, and what replicas agree on, as values."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.checkpoints.files import Checkpoint, Position, position_after
from trainer.faults import Unusable
from trainer.replicas.cluster import Cluster, Role
from trainer.replicas.gathering import gather
from trainer.replicas.preemption import Agreement, agreement_from

STEPS, BATCH = 10, 8


@pytest.mark.parametrize(
    ("saved", "expected"),
    [
        (None, Position(epoch=0, step=0)),
        ({"epoch": 2, "step": 7}, Position(epoch=2, step=7)),
        ({"epoch": 2, "metrics": {"loss": 1.0}}, Position(epoch=2, step=0)),
        ({"epoch": 2}, Position(epoch=1, step=STEPS)),
        ({"epoch": 0}, Position(epoch=0, step=0)),
        ({"epoch": 1, "step": 6, "global_batch_size": 4}, Position(epoch=1, step=3)),
        ({"epoch": 1, "step": 6, "global_batch_size": 6}, Position(epoch=1, step=5)),
        ({"epoch": 1, "step": 6, "global_batch_size": 16}, Position(epoch=1, step=STEPS)),
    ],
    ids=[
        "no checkpoint", "within an epoch", "evaluated", "only the evaluation is left", "nothing to evaluate",
        "half the batch", "examples of a part of a step", "twice the batch",
    ],
)  # fmt: skip
def test_a_run_continues_behind_the_examples_that_were_seen(saved: Any, expected: Position) -> None:
    checkpoint = saved and Checkpoint(**{"path": "/ckpt-1", "step": 0, "global_batch_size": BATCH, **saved})
    assert position_after(checkpoint, steps_per_epoch=STEPS, global_batch_size=BATCH) == expected


@given(st.integers(min_value=0), st.booleans())
def test_an_agreement_is_read_as_it_was_written(step: int, leave: bool) -> None:
    agreement = Agreement(step=step, leave=leave)
    assert agreement_from(agreement.text) == agreement


def test_a_cluster_without_a_chief_is_refused_and_a_single_replica_does_not_wait() -> None:
    workers = Cluster(
        role=Role.WORKER,
        members={Role.WORKER: ("127.0.0.1:1", "127.0.0.1:2")},
        source="TF_CONFIG",
    )
    with pytest.raises(Unusable, match="lists 2 workers and no chief"):
        gather(workers, within_s=0.0)
    gather(Cluster(), within_s=0.0)
