"""The settings of one deployed function, those that all functions of a deployment share, and their processes' variables."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from trainstack.process.fork_server import ForkServer
from trainstack.process.processes import SYSTEM_PATH, ProcessGuard

Entry: TypeAlias = dict[str, object]
WriteLog = Callable[[Sequence[Entry]], None]
"""Writes log entries; called from any thread, may block."""


@dataclass(frozen=True, kw_only=True)
class BucketTrigger:
    """Every object finalized in the bucket of this name."""

    bucket: str


@dataclass(frozen=True, kw_only=True)
class TopicTrigger:
    """Every message published to the topic of this id."""

    topic: str


Trigger = BucketTrigger | TopicTrigger


@dataclass(frozen=True, kw_only=True)
class DeadLetter:
    """Dead-lettering: the id of the topic that takes an event after `max_attempts` failed deliveries, 5 to 100."""

    topic: str
    max_attempts: int


@dataclass(frozen=True, kw_only=True)
class Function:
    """One deployed function.

    `concurrency` is the maximum number of requests that its one instance handles at once. With `retry`, an
    event that the function did not answer with 2xx is redelivered; without, it is dropped. Without
    `dead_letter`, redelivery lasts for as long as the subscription keeps the event.
    """

    name: str
    entry_point: str
    trigger: Trigger
    timeout_s: int
    memory_mib: int
    concurrency: int
    retry: bool
    dead_letter: DeadLetter | None = None


@dataclass(frozen=True, kw_only=True)
class FunctionDeployment:
    """One deployment of the source directory that `server` has loaded.

    Attributes:
        server: forks the functions' processes; see `fork_server`.
        environment: variables of every function.
        identities: by function name, the variables with which it authenticates to the services.
        state: folder; the functions' output is in its folder `logs`.
        project: project id in log entries.
        region: location in log entries.
        write_log: writes log entries.
    """

    server: ForkServer
    environment: Mapping[str, str]
    state: Path
    project: str
    region: str
    write_log: WriteLog
    identities: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


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
