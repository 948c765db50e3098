"""The command line: read the cluster, set the framework's variables, exec the command.

    python -m trainer.launch --framework torch -- python train.py

Exit statuses: see USAGE in trainer/launch/order.py.
"""

import os
import re
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import NoReturn

from trainer.faults import Unusable, collected
from trainer.launch import settings as of
from trainer.launch.order import USAGE, Framework, Order, order_from
from trainer.launch.rendezvous import LEAVES_WITHIN_S, answers_within, serve_beside_this_process
from trainer.launch.settings import Settings, coordinator_of, is_on_loopback
from trainer.launch.tf_config import ai_platform, tensorflow
from trainer.replicas.cluster import Cluster, Role
from trainer.replicas.cluster_variable import cluster_from

NOT_IN_TIME = 134  # 128 + SIGABRT: Vertex AI treats it as possibly transient and restarts the job
CANNOT_RUN, NOT_FOUND = 126, 127  # as in POSIX shells


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """The exit status if the command could not be started; otherwise the command replaces this process."""
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if "--help" in own or "-h" in own:
        print(USAGE, end="")  # noqa: T201 - the output of --help
        return 0
    try:
        order, cluster = _parse_arguments(arguments, environment)
        chosen = settings_for(order, cluster, environment)
    except Unusable as unusable:
        for fault in unusable.faults:
            _print(fault)
        return 2
    command_environment, changes = applied(chosen, environment)
    _print(
        f"trainer.launch --framework {order.framework.value}: {cluster.description()} "
        f"Sets {changes or 'nothing'}; runs {order.command[0]!r}."
    )
    if order.framework is Framework.HOROVOD and (status := _rendezvous(cluster, order.peers_within_s)):
        return status
    return _become(order.command, command_environment)


def _parse_arguments(arguments: Sequence[str], environment: Mapping[str, str]) -> tuple[Order, Cluster]:
    """Order and cluster; raises Unusable with the faults of both."""
    faults: list[str] = []
    with collected(faults):
        order = order_from(arguments)
    with collected(faults):
        cluster = cluster_from(environment)
    if faults:
        raise Unusable(*faults)
    return order, cluster


def settings_for(order: Order, cluster: Cluster, environment: Mapping[str, str]) -> Settings:
    """The variables of the requested framework in this cluster.

    Raises:
        Unusable: the framework does not use a role of the cluster, or lacks one that it needs.
    """
    here = cluster if cluster.source else replace(cluster, members={Role.CHIEF: (_free_address(),)})
    match order.framework:
        case Framework.TORCH:
            return of.torch(here)
        case Framework.JAX:
            return of.jax(here, gpus(environment, os.listdir("/dev")))  # noqa: PTH208 - only names are needed
        case Framework.MXNET:
            return of.mxnet(here)
        case Framework.HOROVOD:
            return of.horovod(here, order.peers_within_s)
        case Framework.TENSORFLOW:
            return tensorflow(cluster)
        case Framework.AI_PLATFORM:
            return ai_platform(cluster)


def applied(chosen: Settings, environment: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """The command's environment, and its changes as text: `NAME=value (was OLD)`."""
    given = dict(environment)
    changes: list[str] = []
    new = {name: value for name, value in chosen.defaults.items() if name not in environment}
    for name, value in {**chosen.variables, **new}.items():
        before = given.get(name, value)
        given[name] = value
        changes.append(f"{name}={value}" + (f" (was {before})" if before != value else ""))
    return given, ", ".join(changes)


def _rendezvous(cluster: Cluster, peers_within_s: float) -> int:
    """0 once the chief serves the rendezvous, or it answers another replica; 0 at once for a single replica."""
    if not cluster.is_multi_worker:
        return 0
    host, port = coordinator_of(cluster)
    if of.rank_of(cluster) == 0:
        try:
            own = host if is_on_loopback(cluster) else ""
            serve_beside_this_process(own, int(port), min(LEAVES_WITHIN_S, peers_within_s))
        except OSError as error:
            _print(f"Cannot serve Horovod's rendezvous on port {port}: {error}. Keep that port free.")
            return NOT_IN_TIME
    elif not answers_within(host, int(port), peers_within_s):
        _print(
            f"The chief did not serve Horovod's rendezvous at {host}:{port} within {peers_within_s:g} s. Start it with "
            f"trainer.launch too, or allow more time with --peers_within_s."
        )
        return NOT_IN_TIME
    return 0


def _become(command: Sequence[str], environment: Mapping[str, str]) -> int:
    sys.stdout.flush()
    try:
        os.execvpe(command[0], list(command), environment)  # noqa: S606 - becoming the command is the purpose
    except FileNotFoundError:
        _print(
            f"{command[0]!r} was not found in PATH ({environment.get('PATH')!r}), or its interpreter is missing."
        )
        return NOT_FOUND
    except OSError as error:
        _print(
            f"Cannot run {command[0]!r}: {error.strerror}. Check that it is executable and that a script starts with `#!`."
        )
        return CANNOT_RUN


def _free_address() -> str:
    """A free loopback address, for a process without a cluster, which coordinates itself."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


def gpus(environment: Mapping[str, str], devices: Sequence[str]) -> int:
    """How many GPUs programs in this container see, by the names in /dev and by CUDA_VISIBLE_DEVICES.

    https://docs.nvidia.com/cuda/cuda-c-programming-guide/#cuda-environment-variables: the devices after an
    invalid one do not count.
    """
    there = sum(re.fullmatch(r"nvidia\d+", device) is not None for device in devices)
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return there
    listed = takewhile(lambda each: each.strip() not in {"", "-1", "NoDevFiles"}, visible.split(","))
    return min(there, len(list(listed)))


def _environment_as_given() -> dict[str, str]:
    """The environment that this process was started with, which Linux keeps.

    Importing the package `trainer` selects Keras 2 in os.environ; the launched program must not inherit that.
    """
    started_with = Path("/proc/self/environ")
    if not started_with.exists():
        return dict(os.environ)
    pairs = (os.fsdecode(pair).partition("=") for pair in started_with.read_bytes().split(b"\0") if pair)
    return {name: value for name, equals, value in pairs if equals}


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - the job's log


def run() -> NoReturn:
    """Run with the arguments and the environment of this process."""
    sys.exit(main(sys.argv[1:], _environment_as_given()))


if __name__ == "__main__":
    run()
