"""The flags of `python -m trainer.task`, checked whole.

Written `--name=value` or `--name value`; dashes inside a name count as underscores, so the
`--job-dir` that AI Platform Training passes is `--job_dir`. Of a flag that comes twice the last counts:
a tuning trial's parameters come behind the arguments of its job.

Every workload has the flags of FLAGS; it may declare more, which are its alone.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from trainer import read
from trainer.faults import Unusable, collected, nearest
from trainer.hyperparameters import Value
from trainer.strategy_choice import CHOICES, Strategy, read_strategy
from trainer.workloads import LOSS, names, names_with, workload_named

OF_WORKLOAD = ("dataset", "epochs", "batch_size", "image_size", "learning_rate")
"""Flags whose default is the attribute of that name of the workload."""
DEFAULT_REPORTED = ("accuracy",)


@dataclass(frozen=True, kw_only=True)
class Flag:
    """How one field of `Flags` is read: `reads` raises ValueError with what it would have taken."""

    reads: Callable[[str], object]
    help: str
    default: object = None
    is_switch: bool = False


def flag(reads: Callable[[str], object], text: str, **more: object) -> Any:
    """A field of `Flags`, and the flag of its name with `text` as its help."""
    return field(metadata={"reads": reads, "help": text, **more})


@dataclass(frozen=True, kw_only=True)
class Flags:
    """What the command line says, over the workload's defaults; `None` leaves a choice to what is found at run time.

    `batch_size` counts examples per replica; `image_size` is height and width in pixels.
    `hyperparameters` has the values of the workload's own flags, all of them.
    """

    workload: str = flag(read.word, "model and defaults, a file of trainer/workloads", default="resnet50")
    dataset: str = flag(read.word, "a TFDS image classification data set, NAME, NAME/CONFIG or NAME:VERSION")
    data_dir: str | None = flag(
        read.word, "where TFDS data lies, gs:// too (default: TFDS_DATA_DIR, else TFDS's own)"
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
        read.count, "end an epoch after this many steps (default: all examples)"
    )
    strategy: Strategy = flag(  # noqa: RUF009 - a field, not a value
        read_strategy, f"how replicas and devices share the work: {', '.join(CHOICES)}", default=Strategy.AUTO
    )
    batch_size: int = flag(read.count, "examples per replica and step (default: the workload's)")
    image_size: tuple[int, int] = flag(
        read.image_size, "pixels: SIDE or HEIGHTxWIDTH (default: the workload's)"
    )
    learning_rate: float = flag(read.positive, "of the optimizer (default: the workload's)")
    weights: str = flag(
        read.word,
        "imagenet, random, a path or gs:// URI of a weights file, or auto: imagenet when reachable, else random",
        default="auto",
    )
    batch_norm_momentum: float | None = flag(
        read.momentum,
        "of the moving averages, above 0 and below 1, or auto: 0.99, or less where the run is too short for it",
    )
    mixed_precision: bool = flag(
        read.truth, "16-bit arithmetic: float16 on GPUs, bfloat16 elsewhere", default=False, is_switch=True
    )
    cache: bool = flag(read.truth, "keep decoded images in memory", default=False, is_switch=True)
    seed: int = flag(read.seed, "of weights and order; every replica must have the same", default=1)
    job_dir: str | None = flag(read.word, "base of the outputs where AIP_MODEL_DIR and the like are not set")
    reported_metrics: tuple[str, ...] = flag(
        read.words,
        "what a tuning trial reports of each evaluation, by commas: `loss` and metrics of the workload "
        "(default: accuracy)",
    )
    checkpoint_every_s: float = flag(
        read.positive,
        "seconds between checkpoints within an epoch; after an epoch there is always one",
        default=600.0,
    )
    checkpoint_steps: int | None = flag(
        read.count, "a checkpoint after every so many steps of the run (default: by the clock only)"
    )
    peers_within_s: float = flag(
        read.positive,
        "seconds that a replica waits for all others to start; then it ends with status 134",
        default=1800.0,
    )
    hyperparameters: Mapping[str, Value]


FLAGS: dict[str, Flag] = {
    each.name: Flag(**each.metadata) for each in fields(Flags) if each.name != "hyperparameters"
}


def flags_from(arguments: Sequence[str]) -> Flags:
    """The flags that `arguments` set, the others at their defaults. `--help` prints and exits with 0.

    Raises:
        Unusable: unknown flags, each with the nearest known one, flags of another workload, and values that
            cannot be read; every fault.
    """
    arguments = [_normal(argument) for argument in arguments]
    faults: list[str] = []
    workload, own = _workload_of(arguments), dict[str, Flag]()
    with collected(faults):
        own = _own_flags(workload)
    given, unknown = _parser(workload, own).parse_known_args(arguments)
    strange = [
        fault
        for argument in unknown
        if argument.startswith("-") and (fault := _unknown(argument, workload, own))
    ]
    if not faults and not strange:
        faults = [f"{argument!r} stands alone: no flag takes it." for argument in unknown]
    faults += strange
    values: dict[str, Any] = {}  # Any: each flag's own reader gives its type
    for name, flag in (FLAGS | own).items():
        text = getattr(given, name)
        try:
            values[name] = flag.default if text is None else flag.reads(text)
        except ValueError as error:
            faults.append(f"--{name}={text}: expected {error}; found {text!r}.")
    if not faults:
        faults += _unreported(values["reported_metrics"] or (), workload)
    if faults:
        raise Unusable(*faults)
    defaults = {name: getattr(workload_named(workload), name) for name in OF_WORKLOAD}
    for name, default in {**defaults, "reported_metrics": DEFAULT_REPORTED}.items():
        values[name] = default if values[name] is None else values[name]
    return Flags(
        **{name: values[name] for name in FLAGS}, hyperparameters={name: values[name] for name in own}
    )


def _workload_of(arguments: Sequence[str]) -> str:
    """The workload that is asked for, before its flags are known."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--workload", nargs="?", default=FLAGS["workload"].default, const="")
    return str(parser.parse_known_args(arguments)[0].workload).strip()


def _own_flags(workload: str) -> dict[str, Flag]:
    """The flags that `workload` alone has.

    Raises:
        Unusable: there is no such workload, or its file names a flag as no flag can be named.
    """
    if not workload:
        return {}  # the flag's own reader says what is missing
    declared = workload_named(workload).hyperparameters
    if taken := [name for name in declared if name in FLAGS or not name.isidentifier()]:
        raise Unusable(
            f"trainer/workloads/{workload}.py declares {', '.join(map(repr, taken))}: a workload's own flag is a word "
            f"of letters, digits and underscores that no other flag has."
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
    _add(parser.add_argument_group(f"of --workload={workload} alone"), own)
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
    """What is wrong with this flag; None: nothing that is not said of the workload's name already."""
    name = argument.lstrip("-").partition("=")[0]
    if others := names_with(name):
        if workload not in names():
            return None
        return f"--{name} is a flag of --workload={' and '.join(others)}; --workload={workload} has none of that name."
    suggestion = nearest(name, [*FLAGS, *own])
    return f"Unknown flag {'--' + name!r}.{suggestion} `python -m trainer.task --help` lists all."


def _unreported(wanted: Sequence[str], workload: str) -> list[str]:
    known = [*workload_named(workload).metrics, LOSS]
    return [
        f"--reported_metrics: --workload={workload} has no metric {name!r}; it has {', '.join(known)}."
        f"{nearest(name, known)}"
        for name in wanted
        if name not in known
    ]
