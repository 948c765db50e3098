"""The flags of `python -m trainer.task`, checked whole.

Written `--name=value` or `--name value`; dashes inside a name count as underscores, so the
`--job-dir` that AI Platform Training passes is `--job_dir`.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from trainer import read
from trainer.faults import Unusable, nearest


@dataclass(frozen=True, kw_only=True)
class Flags:
    """What the command line says; `None` leaves a choice to the workload or to what is found at run time."""

    workload: str
    dataset: str | None
    data_dir: str | None
    train_split: str | None
    evaluation_split: str | None
    download: bool
    epochs: int | None
    steps_per_epoch: int | None
    batch_size: int | None
    image_size: tuple[int, int] | None
    learning_rate: float | None
    weights: str
    batch_norm_momentum: float | None
    mixed_precision: bool
    cache: bool
    seed: int
    job_dir: str | None


@dataclass(frozen=True, kw_only=True)
class Flag:
    """How one field of `Flags` is read: `reads` raises ValueError with what it would have taken."""

    reads: Callable[[str], object]
    help: str
    default: object = None
    is_switch: bool = False


FLAGS: dict[str, Flag] = {
    "workload": Flag(
        reads=read.word, default="resnet50", help="model and defaults, a file of trainer/workloads"
    ),
    "dataset": Flag(
        reads=read.word, help="a TFDS image classification data set, NAME, NAME/CONFIG or NAME:VERSION"
    ),
    "data_dir": Flag(
        reads=read.word, help="where TFDS data lies, gs:// too (default: TFDS_DATA_DIR, else TFDS's own)"
    ),
    "train_split": Flag(reads=read.word, help="TFDS split to train on (default: train)"),
    "evaluation_split": Flag(
        reads=read.word,
        help="TFDS split to evaluate on after each epoch, or `none` (default: validation, else test, else none)",
    ),
    "download": Flag(
        reads=read.truth, default=True, is_switch=True, help="prepare a data set that is not in data_dir"
    ),
    "epochs": Flag(reads=read.count, help="passes over the training split (default: the workload's)"),
    "steps_per_epoch": Flag(
        reads=read.count, help="end an epoch after this many steps (default: all examples)"
    ),
    "batch_size": Flag(reads=read.count, help="examples per replica and step (default: the workload's)"),
    "image_size": Flag(reads=read.image_size, help="pixels: SIDE or HEIGHTxWIDTH (default: the workload's)"),
    "learning_rate": Flag(reads=read.positive, help="of the optimizer (default: the workload's)"),
    "weights": Flag(
        reads=read.word,
        default="auto",
        help="imagenet, random, a path or gs:// URI of a weights file, or auto: imagenet when reachable, else random",
    ),
    "batch_norm_momentum": Flag(
        reads=read.momentum,
        help="of the moving averages, above 0 and below 1, or auto: 0.99, or less where the run is too short for it",
    ),
    "mixed_precision": Flag(
        reads=read.truth,
        default=False,
        is_switch=True,
        help="16-bit arithmetic: float16 on GPUs, bfloat16 elsewhere",
    ),
    "cache": Flag(reads=read.truth, default=False, is_switch=True, help="keep decoded images in memory"),
    "seed": Flag(reads=read.seed, default=1, help="of weights and order; every replica must have the same"),
    "job_dir": Flag(reads=read.word, help="base of the outputs where AIP_MODEL_DIR and the like are not set"),
}


def flags_from(arguments: Sequence[str]) -> Flags:
    """The flags that `arguments` set, the others at their defaults. `--help` prints and exits with 0.

    Raises:
        Unusable: unknown flags, each with the nearest known one, and values that cannot be read; every fault.
    """
    given, unknown = _parser().parse_known_args([_normal(argument) for argument in arguments])
    faults = [_unknown(argument) for argument in unknown if argument.startswith("-")]
    if not faults:
        faults = [f"{argument!r} stands alone: no flag takes it." for argument in unknown]
    values: dict[str, Any] = {}  # Any: each field's own reader gives its type
    for field in fields(Flags):
        flag, text = FLAGS[field.name], getattr(given, field.name)
        try:
            values[field.name] = flag.default if text is None else flag.reads(text)
        except ValueError as error:
            faults.append(f"--{field.name}={text}: expected {error}; found {text!r}.")
    if faults:
        raise Unusable(*faults)
    return Flags(**values)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m trainer.task", description=__doc__, allow_abbrev=False, exit_on_error=False
    )
    for name, flag in FLAGS.items():
        shown = f"{flag.help} (default: {flag.default})" if flag.default is not None else flag.help
        if flag.is_switch:
            parser.add_argument(f"--{name}", nargs="?", const="true", metavar="true|false", help=shown)
        else:
            parser.add_argument(f"--{name}", nargs="?", const="", metavar="VALUE", help=shown)
    return parser


def _normal(argument: str) -> str:
    if not argument.startswith("--"):
        return argument
    name, equals, value = argument[2:].partition("=")
    return f"--{name.replace('-', '_')}{equals}{value}"


def _unknown(argument: str) -> str:
    name = argument.lstrip("-").partition("=")[0]
    return f"Unknown flag {'--' + name!r}.{nearest(name, FLAGS)} `python -m trainer.task --help` lists all."
