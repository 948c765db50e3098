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

from trainer import survive
from trainer.command_line import command_from
from trainer.faults import Unusable, collected
from trainer.replicas.cluster_variable import cluster_from
from trainer.replicas.ending import end_with


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> dict[str, float] | None:
    """Run with these flags in this environment, as survive.attempt; the faults of flags and cluster are raised at once."""
    faults: list[str] = []
    with collected(faults):
        command = command_from(arguments)
    with collected(faults):
        cluster_from(environment)
    if faults:
        raise Unusable(*faults)
    return survive.attempt(
        command.workload,  # its data, its model, its callbacks and what it serves
        command.settings,
        environment,
        name=command.name,
        flags=command.flags,
    )


if __name__ == "__main__":
    with survive.ended():
        main(sys.argv[1:], os.environ)
        end_with(0)  # at once: TensorFlow's shutdown would wait for peers
