"""The log entries of a job: the service's lines verbatim, and its replicas' output.

Source of the service's lines: logs of training jobs published in public repositories, 2026.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from trainstack.jobs.resource.job import ResourceState
from trainstack.logging.entry import EntryError
from trainstack.logging.structured import entries_from_line
from trainstack.process.output import OutputStream
from trainstack.tasks import cancel_all

Entry = dict[str, object]

WriteLog = Callable[[list[Entry]], Awaitable[object] | None]
"""Writes log entries, as `entries:write` does; called from the event loop, in order."""

WAITING = "Waiting for job to be provisioned."
PROVISIONING = (
    "Vertex AI is provisioning job running framework. "
    "First time usage might take couple of minutes, and subsequent runs can be much faster."
)
SETTING_UP = "Vertex AI is setting up this job."
WAITING_FOR_PROGRAM = "Waiting for training program to start."
PREPARING = "Job is preparing."
RUNNING = "Job is running."
TEARING_DOWN = "Tearing down training program."
TORN_DOWN = "Finished tearing down training program."
# "Job cancelled." was not found in any published log; docs/reference/fidelity-jobs.md says so.
LAST = {
    ResourceState.SUCCEEDED: "Job completed successfully.",
    ResourceState.FAILED: "Job failed.",
    ResourceState.CANCELLED: "Job cancelled.",
}
INTERNAL_ERROR = "Internal error occurred for the current attempt."
STACK_STOPPED = "The local stack was stopped while this job ran."
"""Ours, in its own entry after the service's: nothing is wrong with the program."""

_FLUSH_S = 0.1
_MANY = 1000

_log = logging.getLogger(__name__)


class JobLog:
    """Writes the entries of one job, in order, in batches; `flush` returns when everything logged so far is written.

    Each entry has a later timestamp than the one before, so sorting by time keeps the order.
    """

    def __init__(self, write: WriteLog, *, project_id: str, job_id: str, trial_id: str = "") -> None:
        self._trial = {"ml.googleapis.com/trial_id": trial_id} if trial_id else {}
        self._write = write
        self._project_id = project_id
        self._job_id = job_id
        self._pending: list[Entry] = []
        self._last = datetime.min.replace(tzinfo=UTC)
        self._count = 0
        self._prefix = f"{int(job_id):x}" if job_id.isdigit() else job_id
        self._prefix += f"t{trial_id}" if trial_id else ""  # trials share the job_id of their tuning job
        self._writing = asyncio.Lock()
        self._timer: asyncio.Task[None] | None = None

    async def service(self, text: str, severity: str = "INFO") -> None:
        """Write one line of the service, after everything logged before it."""
        self._add("service", f"ml.googleapis.com/{self._job_id}", {"textPayload": text, "severity": severity})
        await self.flush()

    async def worker(self, task_name: str, stream: OutputStream, lines: Sequence[bytes]) -> None:
        """Log lines that a replica printed; they are written within 100 ms.

        Of a flood, returns only after a pause as long as its last thousand lines took: writing them keeps a processor
        busy, and the stack has other work. The program waits meanwhile, when its pipe is full.
        """
        for line in lines:
            for payload in entries_from_line(line.decode("utf-8", "replace"), stream.value, tag=task_name):
                self._add(task_name, task_name, payload)
        if len(self._pending) >= _MANY:
            began_s = time.monotonic()
            await self.flush()
            await asyncio.sleep(time.monotonic() - began_s)
        elif self._pending and self._timer is None:
            self._timer = asyncio.create_task(self._flush_soon())

    async def flush(self) -> None:
        """Write pending entries. If Cloud Logging refuses some of them, that is reported and the job continues."""
        async with self._writing:
            batch, self._pending = self._pending, []
            if not batch:
                return
            try:
                waiting = self._write(batch)
                if waiting is not None:
                    await waiting
            except EntryError as refused:  # the others are stored
                _log.error("job %s: Cloud Logging refused log entries: %s", self._job_id, refused)
            except Exception:
                _log.exception("job %s: lost up to %d log entries", self._job_id, len(batch))

    async def close(self) -> None:
        timer, self._timer = self._timer, None
        if timer is not None:
            await cancel_all([timer])
        await self.flush()

    async def _flush_soon(self) -> None:
        await asyncio.sleep(_FLUSH_S)
        self._timer = None
        await self.flush()

    def _add(self, task_name: str, log_id: str, payload: Entry) -> None:
        self._last = max(datetime.now(UTC), self._last + timedelta(microseconds=1))
        self._count += 1
        labels = {"ml.googleapis.com/endpoint": ""}
        if task_name != "service":
            labels = {"ml.googleapis.com/job_id": self._job_id}
        labels |= self._trial
        entry: Entry = {
            "insertId": f"{self._prefix}-{int(self._last.timestamp() * 1e6):x}-{self._count:x}",
            "logName": f"projects/{self._project_id}/logs/{quote(log_id, safe='')}",
            "resource": {
                "type": "ml_job",
                "labels": {"job_id": self._job_id, "project_id": self._project_id, "task_name": task_name},
            },
            "labels": labels,
            "timestamp": self._last.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        }
        if isinstance(more := payload.pop("labels", None), dict):
            entry["labels"] = {**labels, **more}
        self._pending.append({**entry, **payload})
