"""Everything a training run was told, in one value: flags over the workload's defaults."""

from dataclasses import dataclass

from trainer.flags import Flags
from trainer.workloads import Workload


@dataclass(frozen=True, kw_only=True)
class Settings:
    """`batch_size` counts examples per replica; `image_size` is height and width in pixels."""

    dataset: str
    epochs: int
    batch_size: int
    image_size: tuple[int, int]
    learning_rate: float
    steps_per_epoch: int | None
    batch_norm_momentum: float | None
    cache: bool
    seed: int


def settings_from(flags: Flags, workload: Workload) -> Settings:
    return Settings(
        dataset=flags.dataset or workload.dataset,
        epochs=flags.epochs or workload.epochs,
        batch_size=flags.batch_size or workload.batch_size,
        image_size=flags.image_size or workload.image_size,
        learning_rate=flags.learning_rate or workload.learning_rate,
        steps_per_epoch=flags.steps_per_epoch,
        batch_norm_momentum=flags.batch_norm_momentum,
        cache=flags.cache,
        seed=flags.seed,
    )


def steps_per_epoch(train_examples: int, global_batch_size: int, cap: int | None) -> int:
    """Full batches in one pass over the training split, at least 1, at most `cap`."""
    return min(max(1, train_examples // global_batch_size), cap or train_examples)


BATCH_NORM_MOMENTUM = 0.99  # Keras' own
INITIAL_SHARE_LEFT = 0.01


def batch_norm_momentum(wanted: float | None, total_steps: int) -> float:
    """`wanted`, or for None the largest, up to Keras' 0.99, that leaves 1 % of the initial averages.

    After n steps a moving average still holds momentum**n of the value it began with. At 0.99 that
    is 82 % after 20 steps: a short run would train well and classify at random, because inference
    uses the averages. From 459 steps on this is Keras' own value.
    """
    return wanted or min(BATCH_NORM_MOMENTUM, INITIAL_SHARE_LEFT ** (1 / total_steps))
