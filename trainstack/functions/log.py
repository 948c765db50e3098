"""A function's output: written to a file and to Cloud Logging."""

import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime

from trainstack.functions.function import Entry, Function, FunctionDeployment, revision_of
from trainstack.logging.structured import entries_from_line
from trainstack.process.output import OutputStream

ROTATE_BYTES = 10_000_000
KEPT_TAIL_LINES = 30

_log = logging.getLogger(__name__)


class FunctionLog:
    """The output of one function's processes, in `directory/<function>.log` and in Cloud Logging.

    Entries have the resource and log names that Cloud Run uses for a function:
    https://cloud.google.com/run/docs/logging
    """

    def __init__(self, function: Function, deployment: FunctionDeployment) -> None:
        """Open the file; an existing one larger than ROTATE_BYTES becomes `<function>.log.1`.

        Raises:
            OSError: the directory is not writable.
        """
        path = deployment.state / "logs" / f"{function.name}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() and path.stat().st_size > ROTATE_BYTES:
            path.replace(path.with_suffix(".log.1"))
        self._file = path.open("ab", buffering=0)
        self._name = function.name
        self._project = deployment.project
        self._write = deployment.write_log
        self._common: Entry = {
            "resource": {
                "type": "cloud_run_revision",
                "labels": {
                    "project_id": deployment.project,
                    "location": deployment.region,
                    "service_name": function.name,
                    "configuration_name": function.name,
                    "revision_name": revision_of(function),
                },
            },
            "labels": {"goog-managed-by": "cloudfunctions"},
        }
        self.tail: list[str] = []

    async def lines(self, stream: OutputStream, lines: Sequence[bytes]) -> None:
        """Record printed lines, in order."""
        self._file.write(b"".join(line + b"\n" for line in lines))
        texts = [line.decode(errors="replace") for line in lines]
        self.tail = [*self.tail, *texts][-KEPT_TAIL_LINES:]
        log_name = self._log_name(stream.value)
        entries = [
            {**self._common, "logName": log_name, **entry}
            for text in texts
            if text
            for entry in entries_from_line(text, stream.value)
        ]
        if entries:
            await asyncio.to_thread(self._keep, entries)

    def error(self, message: str) -> None:
        """Record an error that the platform reports about the instance."""
        self._file.write(f"{datetime.now(UTC).isoformat(timespec='milliseconds')} {message}\n".encode())
        entry = {"logName": self._log_name("varlog/system"), "severity": "ERROR", "textPayload": message}
        self._keep([{**self._common, **entry}])

    def request(self, *, status: int, latency_s: float, request_bytes: int, event_id: str) -> None:
        """Record a request, as Cloud Run's request log does for every request it routes to an instance."""
        severity = "INFO" if status < 400 else "WARNING" if status < 500 else "ERROR"  # noqa: PLR2004  # HTTP's classes
        http_request = {
            "requestMethod": "POST",
            "requestUrl": "/",
            "status": status,
            "requestSize": str(request_bytes),
            "latency": f"{latency_s:.6f}s",
            "userAgent": "APIs-Google; (+https://developers.google.com/webmasters/APIs-Google.html)",
        }
        entry: Entry = {
            "logName": self._log_name("requests"),
            "severity": severity,
            "httpRequest": http_request,
            "labels": {"goog-managed-by": "cloudfunctions", "ce-id": event_id},
        }
        self._keep([{**self._common, **entry}])

    def close(self) -> None:
        self._file.close()

    def _keep(self, entries: Sequence[Entry]) -> None:
        try:
            self._write(entries)
        except Exception as error:  # the file has the line that Cloud Logging refuses; keep reading
            _log.warning("Cloud Logging did not accept all entries of %s: %s", self._name, error)

    def _log_name(self, log: str) -> str:
        return f"projects/{self._project}/logs/run.googleapis.com%2F{log.replace('/', '%2F')}"
