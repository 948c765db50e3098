"""One function's instance: keeps its process running and sends requests to it."""

import asyncio
import contextlib
import http.client
import os
import signal
import socket
import threading
import time
from collections.abc import Mapping
from pathlib import Path

from trainstack.functions.environment import environment_of
from trainstack.functions.function import Function, FunctionDeployment
from trainstack.functions.log import FunctionLog
from trainstack.process.child import Child
from trainstack.process.fork_server import ForkFailedError

START_DEADLINE_S = 60.0
"""How long a process may take until its port answers; Cloud Run's startup probe allows 240 s."""

PENDING_S = 10.0
"""How long a request waits for a starting instance; the minimum that Cloud Run documents."""

STOP_GRACE_S = 3.0
STEADY_S = 30.0
FIRST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 10.0
_POLL_S = 0.02


class StartFailedError(Exception):
    """The function's process ended, or its port did not answer in time; the message has the end of its output."""


class Instance:
    """The one instance of a function, live between `start` and `stop`.

    A process that ends is restarted at once the first time, then after pauses that double up to
    LONGEST_PAUSE_S, until one has run for STEADY_S seconds.
    """

    def __init__(self, function: Function, deployment: FunctionDeployment, *, home: Path) -> None:
        """Reserve a port, open the log and create `home`, the function's HOME.

        Raises:
            OSError: the state folder is not writable.
        """
        self.function = function
        self._server = deployment.server
        self._log = FunctionLog(function, deployment)
        self._port = _ReservedPort()
        self._environment = environment_of(
            function,
            shared={**deployment.identities.get(function.name, {}), **deployment.environment},
            port=self._port.number,
            home=home,
        )
        home.mkdir(parents=True, exist_ok=True)
        self._ready = threading.Event()
        self._stopped = False
        self._supervisor: asyncio.Task[None] | None = None
        self._child: Child | None = None

    @property
    def url(self) -> str:
        """The URL that accepts events."""
        return f"http://127.0.0.1:{self._port.number}"

    @property
    def pid(self) -> int | None:
        """The id of the current process; None while none runs."""
        return self._child.pid if self._child is not None and self._child.returncode is None else None

    async def start(self) -> None:
        """Return when the port answers.

        Raises:
            StartFailedError: the first process ended or never answered; the platform would fail the deployment.
        """
        child = await self._run()
        self._supervisor = asyncio.create_task(self._keep_running(child), name=f"keep {self.function.name}")

    async def stop(self) -> None:
        """End the process. Safe to call twice, and before `start`."""
        supervisor, self._supervisor = self._supervisor, None
        if supervisor is not None:
            supervisor.cancel()
            await asyncio.gather(supervisor, return_exceptions=True)
        self._stopped = True
        self._ready.set()  # requests that wait for a process stop waiting
        if self._child is not None:
            await self._child.stop(grace_s=STOP_GRACE_S)
        self._port.close()
        self._log.close()

    def kill(self) -> None:
        """Kill the process and its workers at once, as the platform does when memory runs out; a new one starts.

        May be called from any thread. Does nothing if no process runs.
        """
        if (pid := self.pid) is not None:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.killpg(pid, signal.SIGKILL)

    def post(self, headers: Mapping[str, str], body: bytes) -> int:
        """The HTTP status of the function's response to one request. Blocks; thread-safe.

        In place of a response, the platform's front end answers 503 if no instance starts within PENDING_S,
        504 if the function's timeout passes, and 502 if the connection breaks.
        """
        began = time.monotonic()
        status = self._answer(headers, body, pending_until=began + PENDING_S)
        self._log.request(
            status=status,
            latency_s=time.monotonic() - began,
            request_bytes=len(body),
            event_id=headers.get("ce-id", ""),
        )
        return status

    def _answer(self, headers: Mapping[str, str], body: bytes, *, pending_until: float) -> int:
        connection = self._connection(pending_until)
        if connection is None:
            return 503
        try:
            connection.request("POST", "/", body=body, headers=dict(headers))
            answer = connection.getresponse()
            answer.read()
        except TimeoutError:
            return 504
        except (OSError, http.client.HTTPException):
            return 502
        else:
            return answer.status
        finally:
            connection.close()

    def _connection(self, pending_until: float) -> http.client.HTTPConnection | None:
        """A connection to the process; None if it cannot be opened in time.

        Each request opens its own: gunicorn may close a kept-alive connection just as it is reused.
        """
        while self._ready.wait(max(0.0, pending_until - time.monotonic())) and not self._stopped:
            connection = http.client.HTTPConnection(
                "127.0.0.1", self._port.number, timeout=self.function.timeout_s
            )
            try:
                connection.connect()
            except ConnectionRefusedError:  # the process has just ended, not noticed yet
                time.sleep(_POLL_S)
            except OSError:
                return None
            else:
                return connection
        return None

    async def _keep_running(self, child: Child) -> None:
        running: Child | None = child
        pause_s = 0.0
        while True:
            if running is not None:
                began = time.monotonic()
                code = await running.wait()
                self._ready.clear()
                self._log.error(f"The process of {self.function.name} ended with status {code}.")
                pause_s = 0.0 if time.monotonic() - began >= STEADY_S else pause_s
            await asyncio.sleep(pause_s)
            pause_s = min(LONGEST_PAUSE_S, max(FIRST_PAUSE_S, 2 * pause_s))
            try:
                running = await self._run()
            except StartFailedError as failure:
                running = None
                self._log.error(str(failure))

    async def _run(self) -> Child:
        try:
            child = self._child = await self._server.fork(self._environment, self._log.lines)
        except ForkFailedError as failure:
            raise StartFailedError(f"Function {self.function.name} did not start: {failure}") from failure
        if not await self._answers(child):
            code = await child.stop(grace_s=0.0)
            raise StartFailedError(_why(self.function, code, self._log.tail))
        self._ready.set()
        return child

    async def _answers(self, child: Child) -> bool:
        ended = asyncio.create_task(child.wait())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(START_DEADLINE_S):
                while not ended.done():
                    if await asyncio.to_thread(self._port.answers):
                        break
                    await asyncio.sleep(_POLL_S)
        answered = not ended.done()
        ended.cancel()
        return answered and self._port.answers()


def _why(function: Function, code: int, tail: list[str]) -> str:
    output = "\n".join(f"  {line}" for line in tail) or "  (no output)"
    return (
        f"Function {function.name} (entry point {function.entry_point}) did not answer on its port; "
        f"its process ended with status {code}. The end of its output:\n{output}"
    )


class _ReservedPort:
    """A loopback port that is bound but not listened on: the kernel gives it to no other process, and the child may listen on it.

    Linux lets several sockets with SO_REUSEADDR bind one port as long as only one of them listens; gunicorn
    sets that option. Connections before the child listens are refused, as they should be.
    """

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", 0))
        self.number: int = self._socket.getsockname()[1]

    def answers(self) -> bool:
        """Whether a process listens. Blocks only briefly."""
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.number), timeout=0.5):
            return True
        return False

    def close(self) -> None:
        self._socket.close()
