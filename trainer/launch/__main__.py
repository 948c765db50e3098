"""The command line: read the cluster, set what the framework reads, become the command.

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

from trainer.cluster import Cluster, Role
from trainer.cluster_variable import cluster_from
from trainer.faults import Unusable, collected
from trainer.launch import settings as of
from trainer.launch.order import USAGE, Framework, Order, order_from
from trainer.launch.rendezvous import LEAVES_WITHIN_S, answers_within, serve_beside_this_process
from trainer.launch.settings import Settings, coordinator_of, is_on_loopback
from trainer.launch.tf_config import ai_platform, tensorflow

NOT_IN_TIME = 134  # SIGABRT's: Vertex AI takes it as perhaps transient and restarts the job
CANNOT_RUN, NOT_FOUND = 126, 127  # as a shell has them


def main(arguments: Sequence[str], environment: Mapping[str, str]) -> int:
    """The exit status of an order that failed; one that does not fail becomes its command and never returns."""
    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if "--help" in own or "-h" in own:
        print(USAGE, end="")  # noqa: T201 - asked for
        return 0
    try:
        order, cluster = _parse_arguments(arguments, environment)
        chosen = settings_for(order, cluster, environment)
    except Unusable as unusable:
        for fault in unusable.faults:
            _print(fault)
        return 2
    given, said = applied(chosen, environment)
    _print(
        f"trainer.launch --framework {order.framework.value}: {cluster.description()} "
        f"Sets {said or 'nothing'}; becomes {order.command[0]!r}."
    )
    if order.framework is Framework.HOROVOD and (status := _rendezvous(cluster, order.peers_within_s)):
        return status
    return _become(order.command, given)


def _parse_arguments(arguments: Sequence[str], environment: Mapping[str, str]) -> tuple[Order, Cluster]:
    """Order and cluster, or the faults of both at once."""
    faults: list[str] = []
    with collected(faults):
        order = order_from(arguments)
    with collected(faults):
        cluster = cluster_from(environment)
    if faults:
        raise Unusable(*faults)
    return order, cluster


def settings_for(order: Order, cluster: Cluster, environment: Mapping[str, str]) -> Settings:
    """What the ordered framework reads in this cluster.

    Raises:
        Unusable: the framework has no use for some role of the cluster, or lacks one.
    """
    here = cluster if cluster.source else replace(cluster, members={Role.CHIEF: (_free_address(),)})
    match order.framework:
        case Framework.TORCH:
            return of.torch(here)
        case Framework.JAX:
            return of.jax(here, gpus(environment, os.listdir("/dev")))  # noqa: PTH208 - names are wanted
        case Framework.MXNET:
            return of.mxnet(here)
        case Framework.HOROVOD:
            return of.horovod(here, order.peers_within_s)
        case Framework.TENSORFLOW:
            return tensorflow(cluster)
        case Framework.AI_PLATFORM:
            return ai_platform(cluster)


def applied(chosen: Settings, environment: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """The command's environment, and what of it was set: `NAME=value`, with what stood there before."""
    given = dict(environment)
    said: list[str] = []
    new = {name: value for name, value in chosen.defaults.items() if name not in environment}
    for name, value in {**chosen.variables, **new}.items():
        before = given.get(name, value)
        given[name] = value
        said.append(f"{name}={value}" + (f" (was {before})" if before != value else ""))
    return given, ", ".join(said)


def _rendezvous(cluster: Cluster, peers_within_s: float) -> int:
    """0 once the rendezvous of several replicas is served, by the chief, or answers."""
    if not cluster.is_multi_worker:
        return 0
    host, port = coordinator_of(cluster)
    if of.rank_of(cluster) == 0:
        try:
            own = host if is_on_loopback(cluster) else ""
            serve_beside_this_process(own, int(port), min(LEAVES_WITHIN_S, peers_within_s))
        except OSError as error:
            _print(
                f"The rendezvous of Horovod cannot be served on port {port}: {error}. Leave that port free."
            )
            return NOT_IN_TIME
    elif not answers_within(host, int(port), peers_within_s):
        _print(
            f"The chief did not serve Horovod's rendezvous at {host}:{port} within {peers_within_s:g} s. It must be "
            f"started with trainer.launch too; give it longer with --peers_within_s."
        )
        return NOT_IN_TIME
    return 0


def _become(command: Sequence[str], environment: Mapping[str, str]) -> int:
    sys.stdout.flush()
    try:
        os.execvpe(command[0], list(command), environment)  # noqa: S606 - becoming the command is the purpose
    except FileNotFoundError:
        _print(
            f"{command[0]!r} was not found in PATH, {environment.get('PATH')!r}, or its interpreter is missing."
        )
        return NOT_FOUND
    except OSError as error:
        _print(
            f"{command[0]!r} cannot be run: {error.strerror}. Is it an executable file, with a first line `#!`?"
        )
        return CANNOT_RUN


def _free_address() -> str:
    """For a process outside of any cluster, which coordinates itself."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


def gpus(environment: Mapping[str, str], devices: Sequence[str]) -> int:
    """How many GPUs this container's programs see, by the names in /dev and by CUDA_VISIBLE_DEVICES.

    https://docs.nvidia.com/cuda/cuda-c-programming-guide/#cuda-environment-variables: what follows an invalid one
    does not count.
    """
    there = sum(re.fullmatch(r"nvidia\d+", device) is not None for device in devices)
    visible = environment.get("CUDA_VISIBLE_DEVICES")
    if visible is None:
        return there
    wanted = takewhile(lambda each: each.strip() not in {"", "-1", "NoDevFiles"}, visible.split(","))
    return min(there, len(list(wanted)))


def _environment_as_given() -> dict[str, str]:
    """What this process was started with.

    Importing the package `trainer` chooses Keras 2 for itself in os.environ; a program that is launched from here
    chooses for itself. Linux keeps what was given at the start.
    """
    started_with = Path("/proc/self/environ")
    if not started_with.exists():
        return dict(os.environ)
    pairs = (os.fsdecode(pair).partition("=") for pair in started_with.read_bytes().split(b"\0") if pair)
    return {name: value for name, equals, value in pairs if equals}


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)  # noqa: T201 - the job's log


def run() -> NoReturn:
    """Run with this process's own arguments and environment."""
    sys.exit(main(sys.argv[1:], _environment_as_given()))


if __name__ == "__main__":
    run()
