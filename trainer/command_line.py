"""The command line of `python -m trainer.task`: common flags, and those of the workload that `--workload` names.

A flag that the chosen workload does not read is refused: a study over it would spend its trials on nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainer.faults import Unusable, collected, nearest
from trainer.settings.parse import DESCRIPTION, read_flags, read_one
from trainer.settings.setting import Setting, with_defaults, word
from trainer.settings.settings import SETTINGS, Settings
from trainer.workload import LOSS, Workload
from trainer.workloads import all_flags, names_with, workload_named

PROG = "python -m trainer.task"
WORKLOAD = Setting(
    word,
    "the model, its data and defaults: a module of trainer/workloads, or your own as my_package.module",
    "resnet50",
)


@dataclass(frozen=True, kw_only=True)
class Command:
    """What a command line asks for: `flags` has a value for each of the workload's own."""

    name: str
    workload: Workload
    settings: Settings
    flags: Mapping[str, Any]


def command_from(arguments: Sequence[str]) -> Command:
    """The command in `arguments`, with defaults for the rest. `--help` prints the usage and exits with 0.

    Raises:
        Unusable: unknown flags, each with the closest known one, flags of a different workload, and invalid
            values; every fault.
    """
    faults, values, workload = list[str](), dict[str, Any](), None
    name = read_one(arguments, "workload", WORKLOAD)
    with collected(faults):
        workload = workload_named(name) if name else None  # the flag's reader reports the missing value
    common = with_defaults(SETTINGS, workload.defaults if workload else {})
    own = workload.flags if workload else all_flags()  # a fault of the workload's name is none of theirs
    with collected(faults):
        values = read_flags(
            arguments,
            {"all workloads": {"workload": WORKLOAD, **common}, f"only with --workload={name}": own},
            prog=PROG,
            description=f"{DESCRIPTION}\nSome workloads have additional flags.",
            elsewhere=lambda flag: _of_others(flag, name),
        )
    if workload is None or faults:
        raise Unusable(*faults)
    settings = Settings(**{each: values[each] for each in SETTINGS})
    if faults := [*settings.faults(), *_unknown_metrics(settings.reported_metrics, name, workload)]:
        raise Unusable(*faults)
    return Command(
        name=name, workload=workload, settings=settings, flags={each: values[each] for each in own}
    )


def _of_others(flag: str, workload: str) -> str:
    if not (others := names_with(flag)):
        return ""
    return f"--{flag} is a flag of --workload={' and '.join(others)}; --workload={workload} does not have it."


def _unknown_metrics(asked: Sequence[str], name: str, workload: Workload) -> list[str]:
    known = [*workload.metrics, LOSS]
    return [
        f"--reported_metrics: --workload={name} has no metric {each!r}; it has {', '.join(known)}.{nearest(each, known)}"
        for each in asked
        if each not in known
    ]
