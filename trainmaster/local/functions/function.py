"""What a deployment says of one function, and what all of its functions share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from trainmaster.local.process import ProcessGuard

Entry: TypeAlias = dict[str, object]
WriteLog = Callable[[Sequence[Entry]], None]
"""Keeps log entries; called from any thread, may block."""


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
    """Where an event goes that kept failing: the topic of this id, after `max_attempts` deliveries, 5 to 100."""

    topic: str
    max_attempts: int


@dataclass(frozen=True, kw_only=True)
class Function:
    """One deployed function.

    `concurrency` is the most requests that its one instance handles at once.
    With `retry`, an event that the function did not answer with 2xx is delivered again; without, it is dropped.
    Without `dead_letter`, it is delivered again for as long as the subscription keeps it.
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
class Deployment:
    """One deployment of a source directory.

    Attributes:
        source: the source directory, with `main.py`.
        environment: variables that every function has.
        identities: for each function by name, the variables that make it known to the services.
        state: what functions print is in its folder `logs`.
        project: id of the project that log entries name.
        region: and their location.
        guard: starts the processes.
        write_log: takes log entries.
    """

    source: Path
    environment: Mapping[str, str]
    state: Path
    project: str
    region: str
    guard: ProcessGuard
    write_log: WriteLog
    identities: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
