"""A functions host on the functions of a source directory, and what its tests send and read."""

import contextlib
import json
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from trainstack.functions.function import Function, FunctionDeployment, TopicTrigger, fork_server
from trainstack.functions.instance import PENDING_S, FunctionsHost, Instance
from trainstack.http import in_thread
from trainstack.process.processes import ProcessGuard

SOURCES = Path(__file__).parent / "sources"
DEADLINE_S = 60


class Entries:
    """What was written to Cloud Logging."""

    def __init__(self) -> None:
        self.kept: list[Mapping[str, Any]] = []

    def write(self, entries: Sequence[Mapping[str, Any]]) -> None:
        self.kept.extend(entries)

    def of(self, log: str) -> list[Mapping[str, Any]]:
        return [each for each in self.kept if each["logName"].endswith(f"run.googleapis.com%2F{log}")]


def hosted(
    *entry_points: str,
    source: Path,
    state: Path,
    environment: Mapping[str, str],
    identities: Mapping[str, Mapping[str, str]] | None = None,
    entries: Entries | None = None,
    timeout_s: int = 30,
) -> AbstractContextManager[dict[str, Instance]]:
    """Runs the functions of these entry points while the block runs; yields their instances by name."""
    functions = [
        Function(
            name=entry_point.replace("_", "-"),
            entry_point=entry_point,
            trigger=TopicTrigger(topic="topic-1"),
            timeout_s=timeout_s,
            memory_mib=256,
            concurrency=4,
            retry=True,
        )
        for entry_point in entry_points
    ]

    @asynccontextmanager
    async def running() -> AsyncIterator[dict[str, Instance]]:
        guard = ProcessGuard()
        deployment = FunctionDeployment(
            server=fork_server(source, environment, guard),
            environment=environment,
            state=state,
            project="p1",
            region="us-central1",
            write_log=(entries or Entries()).write,
            identities=identities or {},
        )
        host = FunctionsHost(functions, deployment)
        try:
            await host.start()
            yield host.instances
        finally:
            await host.stop()
            await guard.stop(grace_s=1)

    return in_thread(running)


def start_process(instance: Instance) -> Instance:
    """The instance, whose process answers; it got no event."""
    with contextlib.suppress(urllib.error.HTTPError):
        urllib.request.urlopen(instance.url, timeout=DEADLINE_S).close()
    return instance


def event(event_id: str = "1", **data: object) -> tuple[dict[str, str], bytes]:
    headers = {
        "ce-id": event_id,
        "ce-source": "//pubsub.googleapis.com/projects/p1/topics/topic-1",
        "ce-specversion": "1.0",
        "ce-type": "google.cloud.pubsub.topic.v1.messagePublished",
        "Content-Type": "application/json",
    }
    return headers, json.dumps(data).encode()


def answered(instance: Instance, *given: Any) -> int:
    """The status; 503 only if it came before a request's time to wait for a process was over."""
    while True:
        began = time.monotonic()
        status = instance.post(*given)
        if status != 503 or time.monotonic() - began < PENDING_S - 0.1:
            return status
