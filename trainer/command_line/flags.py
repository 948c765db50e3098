"""The flags of `python -m trainer.task`.

Write `--name=value` or `--name value`. A dash in a name counts as an underscore, so `--job-dir`, which
AI Platform Training passes, is `--job_dir`. If a flag is given twice, the last value counts: a tuning
trial's parameters follow the arguments of its job.

Some workloads have additional flags.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from trainer.command_line import read
from trainer.command_line.hyperparameters import Value
from trainer.devices.strategy_choice import CHOICES, Strategy, read_strategy
from trainer.faults import Unusable, collected, nearest
from trainer.workloads import LOSS, names, names_with, workload_named

OF_WORKLOAD = ("dataset", "epochs", "batch_size", "image_size", "learning_rate")
"""Flags whose default is the workload's attribute of the same name."""
DEFAULT_REPORTED = ("accuracy",)


@dataclass(frozen=True, kw_only=True)
class Flag:
    """How one field of `Flags` is read: `reads` raises ValueError with a description of valid values."""

    reads: Callable[[str], object]
    help: str
    default: object = None
    is_switch: bool = False


def flag(reads: Callable[[str], object], text: str, **more: object) -> Any:
    """A field of `Flags`, and the flag of its name with `text` as its help."""
    return field(metadata={"reads": reads, "help": text, **more})


@dataclass(frozen=True, kw_only=True)
class Flags:
    """The values of the command line over the workload's defaults; `None` leaves the choice to the run.

    `batch_size` counts examples per replica; `image_size` is height and width in pixels.
    `hyperparameters` has a value for every additional flag of the workload.
    """

    workload: str = flag(
        read.word, "the model and its defaults: a module of trainer/workloads", default="resnet50"
    )
    dataset: str = flag(read.word, "a TFDS image classification data set, NAME, NAME/CONFIG or NAME:VERSION")
    data_dir: str | None = flag(
        read.word, "TFDS data directory, a path or a gs:// URI (default: TFDS_DATA_DIR, else TFDS's default)"
    )
    train_split: str | None = flag(read.word, "TFDS split to train on (default: train)")
    evaluation_split: str | None = flag(
        read.word,
        "TFDS split to evaluate on after each epoch, or `none` (default: validation, else test, else none)",
    )
    download: bool = flag(
        read.truth, "prepare a data set that is not in data_dir", default=True, is_switch=True
    )
    epochs: int = flag(read.count, "passes over the training split (default: the workload's)")
    steps_per_epoch: int | None = flag(
        read.count, "steps per epoch at most (default: as many as the examples fill)"
    )
    strategy: Strategy = flag(  # noqa: RUF009 - a field, not a value
        read_strategy, f"tf.distribute strategy: {', '.join(CHOICES)}", default=Strategy.AUTO
    )
    batch_size: int = flag(read.count, "examples per replica and step (default: the workload's)")
    image_size: tuple[int, int] = flag(
        read.image_size, "image size in pixels: SIDE or HEIGHTxWIDTH (default: the workload's)"
    )
    learning_rate: float = flag(read.positive, "learning rate of the optimizer (default: the workload's)")
    weights: str = flag(
        read.word,
        "initial weights: imagenet, random, a path or gs:// URI of a file, or auto: the public ones if there are any",
        default="auto",
    )
    batch_norm_momentum: float | None = flag(
        read.momentum,
        "momentum of batch normalization's averages, above 0 and below 1, or auto: 0.99, less in a short run",
    )
    mixed_precision: bool = flag(
        read.truth,
        "compute in 16 bits: bfloat16, or float16 on GPUs without it",
        default=False,
        is_switch=True,
    )
    jit: bool = flag(
        read.truth,
        "compile the forward and backward pass of training with XLA",
        default=False,
        is_switch=True,
    )
    steps_per_execution: int = flag(
        read.count,
        "steps that run without a return to Python; progress, checkpoints and preemptions wait for their end",
        default=1,
    )
    accumulate_steps: int = flag(
        read.count,
        "parts of a replica's batch that are computed one after the other, with less memory, for one update; must "
        "divide --batch_size",
        default=1,
    )
    cache: bool = flag(read.truth, "keep decoded images in memory", default=False, is_switch=True)
    seed: int = flag(
        read.seed,
        "seed of the weights and of the order of examples; must be the same on every replica",
        default=1,
    )
    job_dir: str | None = flag(
        read.word,
        "output directory for what AIP_MODEL_DIR, AIP_CHECKPOINT_DIR and AIP_TENSORBOARD_LOG_DIR do not set",
    )
    reported_metrics: tuple[str, ...] = flag(
        read.words,
        "metrics that a tuning trial reports after each evaluation, separated by commas: `loss` or metrics of the "
        "workload (default: accuracy)",
    )
    checkpoint_every_s: float = flag(
        read.positive,
        "seconds between checkpoints within an epoch; every epoch ends with one",
        default=600.0,
    )
    checkpoint_steps: int | None = flag(
        read.count, "steps of the run between checkpoints (default: only --checkpoint_every_s applies)"
    )
    peers_within_s: float = flag(
        read.positive,
        "seconds to wait for all replicas to start; after that the replica exits with status 134",
        default=1800.0,
    )
    hyperparameters: Mapping[str, Value]


FLAGS: dict[str, Flag] = {
    each.name: Flag(**each.metadata) for each in fields(Flags) if each.name != "hyperparameters"
}


def flags_from(arguments: Sequence[str]) -> Flags:
    """The flags from `arguments`, with defaults for the rest. `--help` prints the usage and exits with 0.

    Raises:
        Unusable: unknown flags, each with the closest known one, flags of a different workload, and invalid
            values; every fault.
    """
    arguments = [_normal(argument) for argument in arguments]
    faults: list[str] = []
    workload, own = _workload_of(arguments), dict[str, Flag]()
    with collected(faults):
        own = _own_flags(workload)
    given, unknown = _parser(workload, own).parse_known_args(arguments)
    unknown_flags = [
        fault
        for argument in unknown
        if argument.startswith("-") and (fault := _unknown(argument, workload, own))
    ]
    if not faults and not unknown_flags:
        faults = [
            f"Unexpected argument {argument!r}: it does not belong to any flag." for argument in unknown
        ]
    faults += unknown_flags
    values: dict[str, Any] = {}  # Any: each flag's own reader gives its type
    for name, flag in (FLAGS | own).items():
        text = getattr(given, name)
        try:
            values[name] = flag.default if text is None else flag.reads(text)
        except ValueError as error:
            faults.append(f"--{name}={text}: expected {error}; found {text!r}.")
    if faults:
        raise Unusable(*faults)
    defaults = {name: getattr(workload_named(workload), name) for name in OF_WORKLOAD}
    for name, default in {**defaults, "reported_metrics": DEFAULT_REPORTED}.items():
        values[name] = default if values[name] is None else values[name]
    faults += _uneven_parts(values["accumulate_steps"], values["batch_size"])
    faults += _unknown_metrics(values["reported_metrics"], workload)
    if faults:
        raise Unusable(*faults)
    return Flags(
        **{name: values[name] for name in FLAGS}, hyperparameters={name: values[name] for name in own}
    )


def _workload_of(arguments: Sequence[str]) -> str:
    """The workload's name, read before its flags are known."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--workload", nargs="?", default=FLAGS["workload"].default, const="")
    return str(parser.parse_known_args(arguments)[0].workload).strip()


def _own_flags(workload: str) -> dict[str, Flag]:
    """The additional flags of `workload`.

    Raises:
        Unusable: there is no such workload, or its module declares a flag with a name that is invalid or taken.
    """
    if not workload:
        return {}  # the flag's reader reports the missing value
    declared = workload_named(workload).hyperparameters
    if taken := [name for name in declared if name in FLAGS or not name.isidentifier()]:
        raise Unusable(
            f"trainer/workloads/{workload}.py declares the hyperparameter {', '.join(map(repr, taken))}: a name must "
            f"be a Python identifier and differ from the names of all other flags."
        )
    return {
        name: Flag(reads=parameter.reads, help=parameter.help, default=parameter.default)
        for name, parameter in declared.items()
    }


def _parser(workload: str, own: Mapping[str, Flag]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m trainer.task", description=__doc__, allow_abbrev=False, exit_on_error=False
    )
    _add(parser, FLAGS)
    _add(parser.add_argument_group(f"only with --workload={workload}"), own)
    return parser


# _ActionsContainer: what parsers and groups share.
def _add(group: argparse._ActionsContainer, flags: Mapping[str, Flag]) -> None:
    for name, flag in flags.items():
        shown = f"{flag.help} (default: {flag.default})" if flag.default is not None else flag.help
        const, values = ("true", "true|false") if flag.is_switch else ("", "VALUE")
        group.add_argument(f"--{name}", nargs="?", const=const, metavar=values, help=shown)


def _normal(argument: str) -> str:
    if not argument.startswith("--"):
        return argument
    name, equals, value = argument[2:].partition("=")
    return f"--{name.replace('-', '_')}{equals}{value}"


def _unknown(argument: str, workload: str, own: Mapping[str, Flag]) -> str | None:
    """The fault of this flag; None if the fault of the workload's name covers it."""
    name = argument.lstrip("-").partition("=")[0]
    if others := names_with(name):
        if workload not in names():
            return None
        return f"--{name} is a flag of --workload={' and '.join(others)}; --workload={workload} does not have it."
    suggestion = nearest(name, [*FLAGS, *own])
    return f"Unknown flag {'--' + name!r}.{suggestion} `python -m trainer.task --help` lists all flags."


def _uneven_parts(parts: int, batch_size: int) -> list[str]:
    if batch_size % parts == 0:
        return []
    fault = (
        f"--accumulate_steps={parts}: expected a divisor of --batch_size, which is {batch_size}; the parts of a batch "
        f"must have the same size."
    )
    return [fault]


def _unknown_metrics(names: Sequence[str], workload: str) -> list[str]:
    known = [*workload_named(workload).metrics, LOSS]
    return [
        f"--reported_metrics: --workload={workload} has no metric {name!r}; it has {', '.join(known)}."
        f"{nearest(name, known)}"
        for name in names
        if name not in known
    ]
