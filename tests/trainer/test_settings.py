"""Numbers that follow from what was asked."""

import pytest

from trainer.settings import batch_norm_momentum, evaluation_batch_size, steps_per_epoch


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
        momentum = batch_norm_momentum(None, total)
        assert momentum**total < 1e-4
        assert momentum <= batch_norm_momentum(None, total + 1)


def test_long_runs_and_given_values_are_left_as_keras_and_the_user_want_them() -> None:
    assert batch_norm_momentum(None, 1000) == batch_norm_momentum(None, 10**6) == pytest.approx(0.99)
    assert batch_norm_momentum(0.9, 10) == 0.9


def parts_of_last_batch(examples: int, batch: int, replicas: int) -> list[int]:
    """How TensorFlow splits the last batch: parts of ceil(size / replicas), until nothing is left."""
    left = examples % batch or batch
    part = -(-left // replicas)
    return [max(0, min(part, left - part * replica)) for replica in range(replicas)]


@pytest.mark.parametrize("replicas", [1, 2, 3, 8])
@pytest.mark.parametrize("batch_size", [1, 4, 64])
def test_every_replica_has_an_example_in_every_evaluation_batch(replicas: int, batch_size: int) -> None:
    refused = []
    for examples in range(300):
        batch = evaluation_batch_size(examples, batch_size, replicas)
        if batch is None:
            refused.append(examples)
        else:
            assert batch <= batch_size * replicas
            assert batch % replicas == 0
            assert all(parts_of_last_batch(examples, batch, replicas)), examples
    if batch_size == 64:
        assert max(refused) < replicas**2


def test_the_evaluation_batch_is_as_large_as_may_be() -> None:
    assert evaluation_batch_size(1889, 64, 2) == 128
    assert evaluation_batch_size(9, 4, 2) == 6
    assert evaluation_batch_size(80, 16, 2) == 32
    assert evaluation_batch_size(1, 16, 2) is None
