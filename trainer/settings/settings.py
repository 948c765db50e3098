"""The settings that every run has, whatever it trains."""

from contextlib import suppress
from dataclasses import dataclass

from trainer.devices.strategy_choice import CHOICES, Strategy, read_strategy
from trainer.settings import read
from trainer.settings.setting import setting, settings_of, text_of

HEAD = "head"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a run trains. All replicas must have the same; `None` leaves the choice to the run.

    `batch_size` counts examples per replica. The help of each field is in docs/reference/trainer.md.
    """

    epochs: int = setting(read.count, "passes over the training examples", 1)
    steps_per_epoch: int | None = setting(
        read.count, "steps per epoch at most (default: as many as the examples fill)"
    )
    train: str = setting(
        read.choice(("all", HEAD)),
        "what to train: all layers, or only the head, on features that are computed once; for a workload that says where "
        "its head begins",
        "all",
    )
    strategy: Strategy = setting(  # noqa: RUF009 - a field, not a value
        read_strategy, f"tf.distribute strategy: {', '.join(CHOICES)}", Strategy.AUTO
    )
    batch_size: int = setting(read.count, "examples per replica and step", 32)
    batch_norm_momentum: float | None = setting(
        read.momentum,
        "momentum of batch normalization's averages, above 0 and below 1, or auto: 0.99, less in a short run",
    )
    mixed_precision: bool = setting(
        read.truth, "compute in 16 bits: bfloat16, or float16 on GPUs without it", False
    )
    jit: bool = setting(read.truth, "compile the forward and backward pass of training with XLA", False)
    steps_per_execution: int = setting(
        read.count,
        "steps that run without a return to Python; progress, checkpoints and preemptions wait for their end",
        1,
    )
    accumulate_steps: int = setting(
        read.count,
        "parts of a replica's batch that are computed one after the other, with less memory, for one update; must "
        "divide --batch_size",
        1,
    )
    cache: bool = setting(read.truth, "keep decoded examples in memory", False)
    seed: int = setting(
        read.seed, "seed of the weights and of the order of examples; must be the same on every replica", 1
    )
    job_dir: str | None = setting(
        read.word,
        "output directory for what AIP_MODEL_DIR, AIP_CHECKPOINT_DIR and AIP_TENSORBOARD_LOG_DIR do not set",
    )
    reported_metrics: tuple[str, ...] = setting(
        read.words,
        "metrics that a tuning trial reports after each evaluation, separated by commas: `loss` or metrics that the "
        "model is compiled with",
        ("accuracy",),
    )
    checkpoint_every_s: float = setting(
        read.positive, "seconds between checkpoints within an epoch; every epoch ends with one", 600.0
    )
    checkpoint_steps: int | None = setting(
        read.count, "steps of the run between checkpoints (default: only --checkpoint_every_s applies)"
    )
    peers_within_s: float = setting(
        read.positive,
        "seconds to wait for all replicas to start; after that the replica exits with status 134",
        1800.0,
    )

    def __post_init__(self) -> None:
        with suppress(ValueError):  # `faults` reports what is no strategy
            object.__setattr__(self, "strategy", read_strategy(str(self.strategy)))

    def faults(self) -> list[str]:
        """Every value that a run cannot use, as a sentence."""
        found = []
        for name, each in SETTINGS.items():
            if (value := getattr(self, name)) == each.default:
                continue
            text = text_of(value)
            try:
                each.reads(text)
            except (ValueError, TypeError) as error:
                found.append(f"--{name}={text}: expected {error}; found {value!r}.")
        if not found and self.batch_size % self.accumulate_steps:
            found.append(
                f"--accumulate_steps={self.accumulate_steps}: expected a divisor of --batch_size, which is "
                f"{self.batch_size}; the parts of a batch must have the same size."
            )
        return found


SETTINGS = settings_of(Settings)
