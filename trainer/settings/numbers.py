"""Numbers that follow from the settings and the size of the data.

The averages of batch normalization follow the length of the run: at the usual momentum, 0.99, they still hold
82 % of their first value after 20 steps.
"""

from trainer.faults import Unusable

KERAS_BATCH_NORM_MOMENTUM = 0.99
AVERAGED_SHARE = 0.1
MIN_AVERAGED_STEPS = 2


def steps_per_epoch(train_examples: int, global_batch_size: int, cap: int | None) -> int:
    """Full batches in one pass over the training split; at least 1, at most `cap`."""
    return min(max(1, train_examples // global_batch_size), cap or train_examples)


def evaluation_parts(examples: int, batch_size: int, replicas: int) -> list[range]:
    """Every replica's part of every batch of an evaluation, as examples counted from 0: part i is for replica i % `replicas`.

    A part has at most `batch_size` examples, and at most one more than any other.

    Raises:
        Unusable: a part would be empty: convolutions of empty batches fail on CPUs (TensorFlow 2.21 with oneDNN).
    """
    batches = -(-examples // (batch_size * replicas))
    parts = batches * replicas
    if not 0 < parts <= examples:
        raise Unusable(
            f"The evaluation split has {examples} examples, too few for {replicas} replicas. Use a larger split, "
            f"or none (--evaluation_split=none for images)."
        )
    return [range(examples * part // parts, examples * (part + 1) // parts) for part in range(parts)]


def batch_norm_momentum(requested: float | None, total_steps: int) -> float:
    """`requested`; for None, a momentum that averages over the last tenth of the run, at most Keras' 0.99.

    After n steps, a moving average of momentum m still holds m**n of its initial value: at 0.99, 82 % after 20 steps.
    Inference uses these averages, so a short run would train well and then classify at random.
    """
    steps = max(MIN_AVERAGED_STEPS, total_steps * AVERAGED_SHARE)
    return requested or min(KERAS_BATCH_NORM_MOMENTUM, 1 - 1 / steps)
