"""One function's instance, which keeps its process running and sends requests to it, and all of a deployment's."""

import asyncio
import contextlib
import http.client
import os
import shutil
import signal
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from trainstack.functions.function import Function, FunctionDeployment, environment_of
from trainstack.functions.log import FunctionLog
from trainstack.process.fork_server import ForkFailedError
from trainstack.process.output import readable
from trainstack.process.processes import Child, empty_folder
from trainstack.tasks import cancel_all

START_DEADLINE_S = 60.0
"""How long a process may take until it has loaded its function, or answers; Cloud Run's startup probe allows 240 s."""

PENDING_S = 10.0
"""How long a request waits for a starting instance; the minimum that Cloud Run documents."""

STOP_GRACE_S = 3.0
STEADY_S = 30.0
FIRST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 10.0
LOAD_ONLY = "LOAD_ONLY"
"""The variable of a process that only loads functions, with their entry points, and ends with status 0. See serve.py."""
BACKLOG = 1000


class StartFailedError(Exception):
    """The function's process ended, or did not answer in time; the message has the end of its output."""


class Instance:
    """The one instance of a function, live between `start` and `stop`.

    Its process starts with the first connection to its port, which may come from anywhere on this machine. A process
    that ends is restarted at once the first time, then after pauses that double up to LONGEST_PAUSE_S, until one has run
    for STEADY_S seconds.
    """

    def __init__(self, function: Function, deployment: FunctionDeployment, *, home: Path) -> None:
        """Listen on a port, open the log and create `home`, the function's HOME.

        Raises:
            OSError: the state folder is not writable.
        """
        self.function = function
        self._server = deployment.server
        self._log = FunctionLog(function, deployment)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
        self._port: int = self._listener.getsockname()[1]
        self._environment = environment_of(
            function,
            shared={**deployment.identities.get(function.name, {}), **deployment.environment},
            port=self._port,
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
        return f"http://127.0.0.1:{self._port}"

    @property
    def pid(self) -> int | None:
        """The id of the current process; None while none runs."""
        return self._child.pid if self._child is not None and self._child.returncode is None else None

    def start(self) -> None:
        """Start the process with the first connection."""
        self._supervisor = asyncio.create_task(self._keep_running(), name=f"keep {self.function.name}")

    async def load(self, *entry_points: str) -> None:
        """Return when a process, which ends then, has loaded these functions of the source.

        Raises:
            StartFailedError: one could not be loaded; the platform would fail the deployment.
        """
        child = await self._fork({LOAD_ONLY: ",".join(entry_points)})
        try:
            async with asyncio.timeout(START_DEADLINE_S):
                code = await child.wait()
        except TimeoutError:
            code = await child.stop(grace_s=0.0)
        if code:
            raise StartFailedError(_why(self.function, code, self._log.tail))

    async def stop(self) -> None:
        """End the process. Safe to call twice, and before `start`."""
        supervisor, self._supervisor = self._supervisor, None
        if supervisor is not None:
            await cancel_all([supervisor])
        self._stopped = True
        self._ready.set()  # requests that wait for a process stop waiting
        if self._child is not None:
            await self._child.stop(grace_s=STOP_GRACE_S)
        self._listener.close()
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
        # Each request opens its own: gunicorn may close a kept-alive connection just as it is reused.
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=self.function.timeout_s)
        try:
            connection.connect()  # which starts the first process
            if not self._ready.wait(max(0.0, pending_until - time.monotonic())) or self._stopped:
                return 503
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

    async def _keep_running(self) -> None:
        await readable(self._listener.fileno())
        pause_s = 0.0
        while True:
            began = time.monotonic()
            try:
                child = await self._run()
                code = await child.wait()
            except StartFailedError as failure:
                self._log.error(str(failure))
            else:
                self._ready.clear()
                self._log.error(f"The process of {self.function.name} ended with status {code}.")
                pause_s = 0.0 if time.monotonic() - began >= STEADY_S else pause_s
            await asyncio.sleep(pause_s)
            pause_s = min(LONGEST_PAUSE_S, max(FIRST_PAUSE_S, 2 * pause_s))

    async def _run(self) -> Child:
        child = self._child = await self._fork({})
        if not await self._answers(child):
            code = await child.stop(grace_s=0.0)
            raise StartFailedError(_why(self.function, code, self._log.tail))
        self._ready.set()
        return child

    async def _fork(self, more: Mapping[str, str]) -> Child:
        try:
            return await self._server.fork(
                {**self._environment, **more}, self._log.lines, serves=self._listener.fileno()
            )
        except ForkFailedError as failure:
            raise StartFailedError(f"Function {self.function.name} did not start: {failure}") from failure

    async def _answers(self, child: Child) -> bool:
        """Whether the process answers a request that reaches no function: connections alone wait for any process."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        answer, ended = asyncio.create_task(reader.read(1)), asyncio.create_task(child.wait())
        try:
            await asyncio.wait({answer, ended}, timeout=START_DEADLINE_S, return_when=asyncio.FIRST_COMPLETED)
            return answer.done() and answer.exception() is None and not ended.done()
        finally:
            answer.cancel()
            ended.cancel()
            writer.close()


def _why(function: Function, code: int, tail: list[str]) -> str:
    output = "\n".join(f"  {line}" for line in tail) or "  (no output)"
    return (
        f"Function {function.name} (entry point {function.entry_point}) cannot be loaded; "
        f"its process ended with status {code}. The end of its output:\n{output}"
    )


class FunctionsHost:
    """One instance per function, live between `start` and `stop`.

    All are loaded once when the stack starts, because one that cannot be loaded should fail `up` as it would fail a
    deployment.
    """

    def __init__(
        self,
        functions: Sequence[Function],
        deployment: FunctionDeployment,
        *,
        beside: Sequence[tuple[Sequence[Function], FunctionDeployment]] = (),
    ) -> None:
        """Open a port and make a home for each function; `beside` are those of other deployments of the same source.

        Raises:
            OSError: the state folder is not writable.
        """
        self._homes = empty_folder("tm-home", deployment.state)
        self._server = deployment.server
        self.instances = {
            function.name: Instance(function, each, home=self._homes / function.name)
            for group, each in [(functions, deployment), *beside]
            for function in group
        }

    async def start(self) -> None:
        """Load all functions in one process that ends; return when every function waits for requests.

        Raises:
            StartFailedError: one or more cannot be loaded, each with its reason.
        """
        points = {instance: instance.function.entry_point for instance in self.instances.values()}
        try:
            for first in list(points)[:1]:
                await first.load(*dict.fromkeys(points.values()))
        except StartFailedError as failure:  # of one of them: which?
            loads = [instance.load(point) for instance, point in points.items()]
            outcomes = await asyncio.gather(*loads, return_exceptions=True)
            reasons = [str(outcome) for outcome in outcomes if outcome] or [str(failure)]
            raise StartFailedError("\n".join(reasons)) from failure
        for instance in points:
            instance.start()

    async def stop(self) -> None:
        """End every function and the server. Safe to call twice."""
        await asyncio.gather(*(instance.stop() for instance in self.instances.values()))
        await self._server.stop()
        shutil.rmtree(self._homes, ignore_errors=True)
