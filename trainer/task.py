"""The image's entry point: train a workload and export a model that can be served.

    python -m trainer.task --workload=resnet50 --dataset=cassava --epochs=2
    python -m trainer.task --workload=my_package.module

Exit status: 0 the run finished; 1 it failed; 2 the flags, the environment or the data are unusable (every fault is
on standard error); 134 a peer was lost or did not start; 143 SIGTERM ended the run after a checkpoint. After 134
and 143, starting all replicas again continues the run; see docs/explanation/survival.md.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainer import survive
from trainer.faults import Unusable, collect_faults
from trainer.replicas.cluster_variable import cluster_from
from trainer.replicas.ending import end_with
from trainer.settings.setting import DESCRIPTION, Setting, read_flags, read_one, with_defaults, word
from trainer.settings.settings import SETTINGS, TrainingSettings
from trainer.workload import Workload
from trainer.workloads import all_flags, workload_named

WORKLOAD = Setting(
    word,
    "the model, its data and defaults: a module of trainer/workloads, or your own as my_package.module",
    "resnet50",
)


@dataclass(frozen=True, kw_only=True)
class Command:
    """What a command line asks survive.attempt for: `flags` has a value for each of the workload's own."""

    name: str
    workload: Workload
    settings: TrainingSettings
    flags: Mapping[str, Any]


def command_from(arguments: Sequence[str]) -> Command:
    """The command in `arguments`, with defaults for the rest. `--help` prints the usage and exits with 0.

    Raises:
        Unusable: unknown flags, each with the closest known one, and invalid values; every fault.
    """
    faults, values, workload = list[str](), dict[str, Any](), None
    name = read_one(arguments, "workload", WORKLOAD)
    with collect_faults(faults):
        workload = workload_named(name) if name else None  # the flag's reader reports the missing value
    common = with_defaults(SETTINGS, workload.defaults if workload else {})
    flags = workload.flags if workload else all_flags()  # a fault of the workload's name is none of theirs
    with collect_faults(faults):
        values = read_flags(
            arguments,
            {"all workloads": {"workload": WORKLOAD, **common}, f"only with --workload={name}": flags},
            prog="python -m trainer.task",
            description=f"{DESCRIPTION}\nSome workloads have additional flags.",
        )
    if workload is None or faults:
        raise Unusable(*faults)
    settings = TrainingSettings(**{setting: values[setting] for setting in SETTINGS})
    return Command(
        name=name, workload=workload, settings=settings, flags={flag: values[flag] for flag in flags}
    )


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> dict[str, float] | None:
    """Run with these flags in this environment, as survive.attempt; the faults of flags and cluster are raised at once."""
    faults: list[str] = []
    with collect_faults(faults):
        command = command_from(arguments)
    with collect_faults(faults):
        cluster_from(environment)
    if faults:
        raise Unusable(*faults)
    return survive.attempt(environment=environment, **vars(command))


if __name__ == "__main__":
    with survive.end_on_error():
        main(sys.argv[1:], os.environ)
        end_with(0)  # at once: TensorFlow's shutdown would wait for peers
