"""Where a run resumes after a checkpoint, and what replicas agree on, as values."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.checkpoints.files import Checkpoint, Position, position_after
from trainer.faults import Unusable
from trainer.replicas.cluster import Cluster, Role
from trainer.replicas.gathering import gather
from trainer.replicas.preemption import Agreement, agreement_from

STEPS, BATCH = 10, 8


def after(
    *, epoch: int, step: int = 0, global_batch_size: int = BATCH, metrics: dict[str, float] | None = None
) -> Position:
    checkpoint = Checkpoint(
        path="/chief/ckpt-1", epoch=epoch, step=step, global_batch_size=global_batch_size, metrics=metrics
    )
    return position_after(checkpoint, steps_per_epoch=STEPS, global_batch_size=BATCH)


def test_without_a_checkpoint_a_run_begins() -> None:
    assert position_after(None, steps_per_epoch=STEPS, global_batch_size=BATCH) == Position(epoch=0, step=0)


def test_within_an_epoch_it_goes_on_at_the_step() -> None:
    assert after(epoch=2, step=7) == Position(epoch=2, step=7)


def test_an_evaluated_epoch_is_done() -> None:
    assert after(epoch=2, metrics={"loss": 1.0}) == Position(epoch=2, step=0)


def test_of_an_epoch_that_is_not_evaluated_only_the_evaluation_is_left() -> None:
    assert after(epoch=2) == Position(epoch=1, step=STEPS)


def test_a_checkpoint_before_the_first_epoch_leaves_nothing_to_evaluate() -> None:
    assert after(epoch=0) == Position(epoch=0, step=0)


@pytest.mark.parametrize(("saved", "expected"), [(4, 3), (6, 5), (16, STEPS), (8, 6)])
def test_with_another_batch_it_goes_on_behind_the_examples_that_were_seen(saved: int, expected: int) -> None:
    assert after(epoch=1, step=6, global_batch_size=saved) == Position(epoch=1, step=expected)


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
