"""Numbers that follow from what was asked."""

import pytest

from trainer.data.examples import evaluation_parts, steps_per_epoch
from trainer.faults import Unusable
from trainer.settings.settings import batch_norm_momentum


@pytest.mark.parametrize(
    ("examples", "batch", "cap", "steps"),
    [(320, 32, None, 10), (339, 32, None, 10), (31, 32, None, 1), (320, 32, 4, 4), (320, 32, 99, 10)],
)
def test_an_epoch_has_as_many_full_batches_as_the_data_gives(
    examples: int, batch: int, cap: int | None, steps: int
) -> None:
    assert steps_per_epoch(examples, batch, cap) == steps


def test_the_averages_of_a_short_run_forget_where_they_began() -> None:
    for total in range(20, 1200):
        momentum = batch_norm_momentum(total)
        assert momentum**total < 1e-4
        assert momentum <= batch_norm_momentum(total + 1)


def test_a_long_run_has_the_momentum_of_keras() -> None:
    assert batch_norm_momentum(1000) == batch_norm_momentum(10**6) == pytest.approx(0.99)


@pytest.mark.parametrize("replicas", [1, 2, 3, 8])
@pytest.mark.parametrize("batch_size", [1, 4, 64])
def test_an_evaluation_has_every_example_once_and_one_for_every_replica_in_each_batch(
    replicas: int, batch_size: int
) -> None:
    refused = []
    for examples in range(300):
        try:
            parts = evaluation_parts(examples, batch_size, replicas)
        except Unusable:
            refused.append(examples)
            continue
        assert [example for part in parts for example in part] == list(range(examples))
        assert len(parts) % replicas == 0
        assert 1 <= min(map(len, parts)) <= max(map(len, parts)) <= batch_size
        assert max(map(len, parts)) - min(map(len, parts)) <= 1
    if batch_size > 1:
        assert refused == list(range(replicas))
    else:
        assert refused == [0, *(examples for examples in range(300) if examples % replicas)]


def test_an_evaluation_has_as_few_batches_as_may_be() -> None:
    assert [len(evaluation_parts(*of)) for of in ((1889, 64, 2), (9, 4, 2), (80, 16, 2))] == [30, 4, 6]
    assert evaluation_parts(9, 4, 2) == [range(2), range(2, 4), range(4, 6), range(6, 9)]
    with pytest.raises(Unusable, match="has 1 examples, too few for 2 replicas"):
        evaluation_parts(1, 16, 2)
