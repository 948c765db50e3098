"""Numbers that follow from the flags and the size of the data set."""


def steps_per_epoch(train_examples: int, global_batch_size: int, cap: int | None) -> int:
    """Full batches in one pass over the training split; at least 1, at most `cap`."""
    return min(max(1, train_examples // global_batch_size), cap or train_examples)


def evaluation_batch_size(examples: int, batch_size: int, replicas: int) -> int | None:
    """The largest global batch size, at most `batch_size` per replica, that gives every replica an example in each batch.

    TensorFlow splits a last, smaller batch of k examples into parts of ceil(k / replicas). If the last
    replica gets an empty part, its convolutions fail on CPUs (TensorFlow 2.21 with oneDNN). None if there
    are too few examples for this number of replicas.
    """
    each, over = divmod(examples, replicas)
    if not over:
        return min(batch_size, each) * replicas if each else None
    # The last batch holds replicas * (each % size) + over examples.
    fitting = (size for size in range(batch_size, 0, -1) if each % size >= replicas - over)
    return next((size * replicas for size in fitting), None)


KERAS_BATCH_NORM_MOMENTUM = 0.99
AVERAGED_SHARE = 0.1
MIN_AVERAGED_STEPS = 2


def batch_norm_momentum(requested: float | None, total_steps: int) -> float:
    """`requested`; for None, a momentum that averages over the last tenth of the run, at most Keras' 0.99.

    A moving average with momentum m covers about 1 / (1 - m) steps and, after n steps, still holds m**n
    of its initial value: at 0.99, 82 % after 20 steps. Inference uses these averages, so a short run
    would train well and then classify at random. From 1000 steps on, this is Keras' default.
    """
    steps = max(MIN_AVERAGED_STEPS, total_steps * AVERAGED_SHARE)
    return requested or min(KERAS_BATCH_NORM_MOMENTUM, 1 - 1 / steps)
