"""The settings of one deployed function, and those that all functions of a deployment share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from trainstack.process.fork_server import ForkServer

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
