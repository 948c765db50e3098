"""The environment of functions' processes, none of it from this shell, and of the process that they are forked from."""

import sys
from collections.abc import Mapping
from pathlib import Path

from trainstack.functions.function import Function
from trainstack.process.fork_server import ForkServer
from trainstack.process.processes import SYSTEM_PATH, ProcessGuard

_SERVER = Path(__file__).resolve().parent / "serve.py"

REVISION_SUFFIX = "00001-loc"
"""A revision's name is the service's name, a counter and three letters; this host has one revision."""


def revision_of(function: Function) -> str:
    return f"{function.name}-{REVISION_SUFFIX}"


def environment_of(function: Function, *, shared: Mapping[str, str], port: int, home: Path) -> dict[str, str]:
    """All environment variables of the process.

    The K_ variables, PORT and FUNCTION_TARGET are those of https://cloud.google.com/run/docs/container-contract
    and https://cloud.google.com/functions/docs/configuring/env-var; the upper-case rest is read by functions-framework.

    Args:
        function: the function that the process runs.
        shared: variables of the deployment: project, buckets, service addresses, and the function's identity.
        port: where the process listens, on loopback.
        home: a directory for this process alone, where gunicorn keeps its control socket.
    """
    return {
        **server_environment({}),
        "HOME": str(home),
        "HOST": "127.0.0.1",
        "PORT": str(port),
        "K_SERVICE": function.name,
        "K_REVISION": revision_of(function),
        "K_CONFIGURATION": function.name,
        "FUNCTION_TARGET": function.entry_point,
        "FUNCTION_SIGNATURE_TYPE": "cloudevent",
        "CLOUD_RUN_TIMEOUT_SECONDS": str(function.timeout_s),
        "WORKERS": "1",
        "THREADS": str(function.concurrency),
        **shared,
        "TRAINMASTER_FUNCTION_TIMEOUT_S": str(function.timeout_s),
    }


def server_environment(shared: Mapping[str, str]) -> dict[str, str]:
    """The variables of the process that loads what all functions import: no function's, and no identity."""
    return {
        "PATH": f"{Path(sys.executable).parent}:{SYSTEM_PATH}",
        "HOME": "/nonexistent",
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        **shared,
    }


def fork_server(
    source: Path, environment: Mapping[str, str], guard: ProcessGuard, *, preload: str = ""
) -> ForkServer:
    """The server from which the functions of a source directory, with `main.py`, are forked.

    `environment` has those variables of every function that Python, or a library that is imported, may read at once.
    `preload` is a module that is imported before, if the source has it.
    """
    return ForkServer(
        [sys.executable, "-P", str(_SERVER)],
        env=server_environment({**environment, "PRELOAD_MODULE": preload}),
        cwd=source,
        guard=guard,
    )
