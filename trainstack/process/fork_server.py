"""Child processes forked from one that has loaded what they all need, and which each would load again."""

import asyncio
import contextlib
import json
import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from trainstack.process.family import MARK
from trainstack.process.output import OnLines, OutputStream, readable
from trainstack.process.processes import NUMBER_BYTES, Child, ForkedProcess, ProcessGuard

FORK_DEADLINE_S = 60.0
"""How long a fork may take, with the server's start."""
ENVIRONMENT_BYTES = 48 << 10
"""The largest environment of a forked process, with its mark."""
_ROOM = "TRAINMASTER_ROOM"
_STOP_GRACE_S = 1.0
_KEPT_TAIL_LINES = 30

Files: TypeAlias = frozenset[tuple[Path, int, int]]
"""Path, time of the last change and size of each."""


class ForkFailedError(Exception):
    """The server ended or was silent; the message has the end of its output. Or the environment is too large."""


class ForkServer:
    """Forks processes from one that it starts with the first order, or before.

    It starts another when that one has ended, or when the Python files below its working directory have changed, so
    that a fork runs them as they are. A forked process that outlives its server is ended, because only the server would
    know its exit code.
    """

    def __init__(
        self, argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, guard: ProcessGuard
    ) -> None:
        """`argv` gets one more argument: the descriptor of the socket for `trainstack.functions.forks`."""
        self.cwd = cwd
        self._argv, self._env, self._guard = argv, env, guard
        self._server: Child | None = None
        self._orders: socket.socket | None = None
        self._loaded: Files = frozenset()
        self._tail: list[str] = []

    def start(self) -> None:
        """Let the server load what it needs, so that the first fork does not wait for that."""
        self._running()

    async def fork(self, env: Mapping[str, str], on_lines: OnLines, *, serves: int) -> Child:
        """A child in a new session, with only `env` and the guard's mark as environment.

        `serves` is the descriptor of a socket of which it gets a copy.

        Raises:
            ForkFailedError: no process was forked within FORK_DEADLINE_S.
        """
        mark = self._guard.new_mark()
        order = json.dumps({**env, MARK: mark}).encode()
        if len(order) > ENVIRONMENT_BYTES:
            raise ForkFailedError(
                f"its environment has {len(order):,} bytes; at most {ENVIRONMENT_BYTES:,} are possible"
            )
        (status, stdout, stderr), theirs = zip(*(os.pipe() for _ in range(3)), strict=True)
        pipes = os.fdopen(stdout, "rb", 0), os.fdopen(stderr, "rb", 0)
        try:
            self._send(order, theirs, serves)
            pid = await self._process_id(status)
        except BaseException:
            os.close(status)
            for pipe in pipes:
                pipe.close()
            raise
        forked = ForkedProcess(pid, status, *pipes)
        return self._guard.keep(Child(forked, end=status, mark=mark, on_lines=on_lines))

    async def stop(self) -> None:
        """End the server. Safe to call twice, and without a fork before."""
        if self._orders is not None:
            self._orders.close()
        if self._server is not None:
            await self._server.stop(grace_s=_STOP_GRACE_S)

    def _send(self, order: bytes, pipes: Sequence[int], serves: int) -> None:
        try:
            socket.send_fds(self._running(), [order], [*pipes, serves])
        except OSError as error:
            raise ForkFailedError(f"its order was not accepted: {error}{self._output()}") from error
        finally:
            for pipe in pipes:
                os.close(pipe)

    def _running(self) -> socket.socket:
        files = _python_files(self.cwd)
        if self._orders is not None:
            runs = self._server is not None and self._server.returncode is None
            if runs and self._loaded == files:
                return self._orders
            self._orders.close()  # a server that still runs ends after its last fork
        self._loaded = files
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._orders.setblocking(False)  # a server that takes no orders must not stop this process
        with theirs:
            self._server = self._guard.start(
                [*self._argv, str(theirs.fileno())],
                # A fork shows its environment where the server's is, and so needs as much room.
                env={**self._env, _ROOM: "x" * ENVIRONMENT_BYTES},
                cwd=self.cwd,
                on_lines=self._keep,
                descriptors=[theirs.fileno()],
            )
        return self._orders

    async def _process_id(self, status: int) -> int:
        server = self._server
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FORK_DEADLINE_S):
                await readable(status)
                if number := os.read(status, NUMBER_BYTES):
                    return int.from_bytes(number)
                if server is not None:
                    await server.wait()  # for the end of its output
        raise ForkFailedError(f"the process that loads its modules ended or was silent{self._output()}")

    def _keep(self, _stream: OutputStream, lines: list[bytes]) -> None:
        texts = [line.decode(errors="replace") for line in lines]
        self._tail = [*self._tail, *texts][-_KEPT_TAIL_LINES:]

    def _output(self) -> str:
        return "".join(f"\n  {line}" for line in self._tail)


def _python_files(folder: Path) -> Files:
    paths = set()
    for path in folder.resolve().rglob("*.py"):
        with contextlib.suppress(FileNotFoundError):  # removed just now
            status = path.stat()
            paths.add((path, status.st_mtime_ns, status.st_size))
    return frozenset(paths)
