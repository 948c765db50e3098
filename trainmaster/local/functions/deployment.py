"""What all functions of a stack share."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from trainmaster.local.process import ProcessGuard

Entry: TypeAlias = dict[str, object]
WriteLog = Callable[[Sequence[Entry]], None]
"""Keeps log entries; called from any thread, may block."""


@dataclass(frozen=True, kw_only=True)
class Deployment:
    """One deployment of a source directory.

    Attributes:
        source: the source directory, with `main.py`.
        environment: variables that every function has.
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
