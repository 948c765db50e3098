"""SIGKILL of one of the processes that a stack has started, drawn from a seed."""

import contextlib
import random

import psutil

from trainstack.process.family import members

FUNCTION, REPLICA = "K_SERVICE", "CLOUD_ML_JOB_ID"
"""The variable of the environment that only functions, or only replicas, have."""


def living(token: str, variable: str) -> list[tuple[psutil.Process, str]]:
    """The stack's processes that have this variable, with its value, by age, so that a seed can choose among them."""
    processes = []
    for pid in sorted(members(token)):
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            # Read once: a process that ends meanwhile shows an empty environment before it is gone.
            if (value := process.environ().get(variable)) is not None:
                processes.append((process, value))
    return processes


def kill_one(token: str, variable: str, chance: random.Random) -> str | None:
    """What was killed: a function's name or a job's id; None if no such process exists."""
    with contextlib.suppress(psutil.Error):  # it has just ended by itself
        if victims := living(token, variable):
            victim, name = chance.choice(victims)
            victim.kill()
            return name
    return None
