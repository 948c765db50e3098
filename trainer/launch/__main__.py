"""The command line `python -m trainer.launch --framework torch -- python train.py`.

Reads the cluster, sets the framework's variables, and becomes the command that follows the dashes.

Exit status: the command's; 2 the arguments or the cluster are invalid; 126 the command cannot be run;
127 the command was not found.
"""

import os
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

import trainer
from trainer.faults import Unusable, collect_faults
from trainer.launch.frameworks import FRAMEWORKS, KEPT_IF_SET, gpus_from, variables_for
from trainer.replicas.cluster import ClusterSpec, ReplicaRole
from trainer.replicas.cluster_variable import cluster_from
from trainer.settings.setting import Setting, one_of, read_flags

CANNOT_RUN, NOT_FOUND = 126, 127  # as in POSIX shells
FLAGS = {
    "framework": Setting(
        one_of(*FRAMEWORKS),
        f"whose variables are set: {', '.join(FRAMEWORKS)}; docs/how-to/frameworks.md has them",
    ),
}


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """The exit status if the command could not be started; otherwise the command replaces this process."""
    try:
        name, command, cluster = _parse_arguments(arguments, environment)
        # A process without a cluster coordinates itself.
        here = (
            cluster if cluster.source else replace(cluster, members={ReplicaRole.CHIEF: (_free_address(),)})
        )
        gpus = gpus_from(environment, os.listdir("/dev"))  # noqa: PTH208 - only names are needed
        variables = variables_for(name, here, gpus=gpus)
    except Unusable as unusable:
        for fault in unusable.faults:
            _print_line(fault)
        return 2
    command_environment, changes = changed_environment(variables, environment)
    _print_line(
        f"trainer.launch --framework {name}: {cluster.description()} Sets {changes or 'nothing'}; runs {command[0]!r}."
    )
    return _become_command(command, command_environment)


def _parse_arguments(
    arguments: Sequence[str], environment: Mapping[str, str]
) -> tuple[str, Sequence[str], ClusterSpec]:
    """The framework's name, the command and the cluster. `--help` before the command prints the usage and exits with 0.

    Raises:
        Unusable: an unknown flag, a missing or unknown framework, no command, a cluster that contradicts itself; every
            fault.
    """
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    command, faults = arguments[cut + 1 :], list[str]()
    with collect_faults(faults):
        flags = read_flags(
            arguments[:cut], {"flags": FLAGS}, prog="python -m trainer.launch", description=__doc__
        )
        if flags["framework"] is None:
            faults.append(f"--framework is missing; expected one of {', '.join(FRAMEWORKS)}.")
    if not (command and command[0]):
        faults.append("The command is missing: end with `-- COMMAND`, as in `-- python train.py`.")
    with collect_faults(faults):
        cluster = cluster_from(environment)
    if faults:
        raise Unusable(*faults)
    return flags["framework"], command, cluster


def changed_environment(
    variables: Mapping[str, str], environment: Mapping[str, str]
) -> tuple[dict[str, str], str]:
    """The command's environment, and its changes as text: `NAME=value (was OLD)`."""
    kept = {name for name in KEPT_IF_SET if name in environment}
    new = {name: value for name, value in variables.items() if name not in kept}
    changes = [
        f"{name}={value}" + (f" (was {was})" if (was := environment.get(name, value)) != value else "")
        for name, value in new.items()
    ]
    return {**environment, **new}, ", ".join(changes)


def _become_command(command: Sequence[str], environment: Mapping[str, str]) -> int:
    sys.stdout.flush()
    try:
        os.execvpe(command[0], list(command), environment)  # noqa: S606 - becoming the command is the purpose
    except FileNotFoundError:
        _print_line(
            f"{command[0]!r} was not found in PATH ({environment.get('PATH')!r}), or its interpreter is missing."
        )
        return NOT_FOUND
    except OSError as error:
        _print_line(
            f"Cannot run {command[0]!r}: {error.strerror}. Check that it is executable and that a script starts with `#!`."
        )
        return CANNOT_RUN


def _free_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


def _print_line(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - the job's log


def run() -> NoReturn:
    """Run with the arguments of this process and the environment that it was started with."""
    sys.exit(main(sys.argv[1:], trainer.STARTED_WITH))


if __name__ == "__main__":
    run()
