"""The settings that every run has, whatever it trains."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from trainer.devices.choices import Strategy
from trainer.faults import collect_faults
from trainer.settings.setting import (
    Setting,
    count,
    one_of,
    positive,
    step_range,
    truth,
    whole_number,
    word,
    words,
)

KERAS_BATCH_NORM_MOMENTUM = 0.99
LAST = "last"
BETTER = {
    "max": ("acc", "accuracy", "auc", "precision", "recall", "f1_score", "iou"),
    "min": ("loss", "error", "mae", "mse", "rmse"),
}
"""What is better, by the end of a metric's name."""
AVERAGED_SHARE = 0.1
MIN_AVERAGED_STEPS = 2


def read_export(text: str) -> str:
    """`last`, or `best:METRIC:max` and `:min`, with what the metric's name says where the text says neither."""
    kind, _, rest = text.partition(":")
    metric, _, better = rest.partition(":")
    for ending, names in () if better else BETTER.items():
        better = ending if metric.lower().endswith(names) else better
    if text == LAST or (kind == "best" and metric and better in BETTER):
        return text if text == LAST else f"best:{metric}:{better}"
    raise ValueError("last, best:METRIC, best:METRIC:max or best:METRIC:min; METRIC as in val_loss")


def _setting_field(reads: Callable[[str], Any], text: str, default: Any = None) -> Any:
    return field(default=default, metadata={"setting": Setting(reads, text, default)})


@dataclass(frozen=True, kw_only=True)
class TrainingSettings:
    """How a run trains. All replicas must have the same; `None` leaves the choice to the run.

    A value may also be the text of its flag: `epochs="2"` is `epochs=2`. What cannot be read stays for `faults`.
    The table of flags in docs/reference/trainer.md is written from these fields.
    """

    epochs: int = _setting_field(count, "passes over the training examples", 1)
    steps_per_epoch: int | None = _setting_field(
        count, "steps per epoch at most (default: as many as the examples fill)"
    )
    strategy: Strategy = _setting_field(  # noqa: RUF009 - a field, not a value
        one_of(*Strategy), f"tf.distribute strategy: {', '.join(Strategy)}", Strategy.AUTO
    )
    batch_size: int = _setting_field(
        count, "examples per replica and step; a global batch is this times the number of replicas", 32
    )
    mixed_precision: bool = _setting_field(
        truth, "compute in 16 bits: bfloat16, or float16 on GPUs without it", False
    )
    jit: bool = _setting_field(
        truth,
        "compile the forward and backward pass of training with XLA, but not the optimizer's update",
        False,
    )
    steps_per_execution: int = _setting_field(
        count,
        "steps that run without a return to Python; progress, checkpoints and preemptions wait for their end",
        1,
    )
    cache: bool = _setting_field(
        truth,
        "decode each example once and keep it in memory, an image with 3 bytes per pixel; at most 2 GiB",
        False,
    )
    seed: int = _setting_field(
        whole_number(0, 2**31 - 1),
        "seed of the weights and of the order of examples; must be the same on every replica",
        1,
    )
    job_dir: str | None = _setting_field(
        word,
        "output directory for what AIP_MODEL_DIR, AIP_CHECKPOINT_DIR and AIP_TENSORBOARD_LOG_DIR do not set "
        "(default: output)",
    )
    reported_metrics: tuple[str, ...] = _setting_field(
        words,
        "metrics that a tuning trial reports after each evaluation, separated by commas: `loss` or metrics that the "
        "model is compiled with",
        ("accuracy",),
    )
    validation_freq: int = _setting_field(count, "epochs between evaluations; the last epoch has one", 1)
    export: str = _setting_field(
        read_export,
        "weights to export: `last`, those of the last epoch; or `best:METRIC`, those of the epoch with the best METRIC of "
        "`epoch_finished`, such as best:val_loss; best:METRIC:max or :min where the name does not say what is better",
        LAST,
    )
    deterministic: bool = _setting_field(
        truth, "give the same numbers in each run on the same machines, also on GPUs, at some cost", False
    )
    warmup_steps: int | None = _setting_field(
        count,
        "steps at the start of the run in which the learning rate rises to the optimizer's (default: none)",
    )
    profile: str | None = _setting_field(
        step_range,
        "first and last step of this attempt to profile on the chief for TensorBoard, such as 10,20 (default: none)",
    )
    checkpoint_every_s: float = _setting_field(
        positive, "seconds between checkpoints within an epoch; every epoch ends with one", 600.0
    )
    checkpoint_steps: int | None = _setting_field(
        count, "steps of the run between checkpoints (default: only --checkpoint_every_s applies)"
    )
    peers_within_s: float = _setting_field(
        positive,
        "seconds to wait for all replicas to start; after that the replica exits with status 134",
        1800.0,
    )
    start_from: str | None = _setting_field(
        word,
        "gs:// URI or path of a model that a run exported, to start from its weights; in a request also `champion` or a "
        "run's id (default: the weights of the model as it is built)",
    )

    def __post_init__(self) -> None:
        self.faults()  # reads what can be read

    @property
    def asked_best(self) -> tuple[str, bool] | None:
        """The metric of the epoch to export, and whether higher is better; None for the last epoch."""
        _, *best = self.export.split(":")
        return (best[0], best[1] == "max") if best else None

    def faults(self) -> list[str]:
        """Every value that a run cannot use, as a sentence. The others become what their readers make of them."""
        faults: list[str] = []
        for name, setting in SETTINGS.items():
            with collect_faults(faults):
                object.__setattr__(self, name, setting.value_from(name, getattr(self, name)))
        return faults


SETTINGS: dict[str, Setting] = {field.name: field.metadata["setting"] for field in fields(TrainingSettings)}


def batch_norm_momentum(total_steps: int) -> float:
    """A momentum that averages over the last tenth of the run, at most Keras' 0.99.

    After n steps, a moving average of momentum m still holds m**n of its initial value: at 0.99, 82 % after 20 steps.
    Inference uses these averages, so a short run would train well and then classify at random.
    """
    steps = max(MIN_AVERAGED_STEPS, total_steps * AVERAGED_SHARE)
    return min(KERAS_BATCH_NORM_MOMENTUM, 1 - 1 / steps)
