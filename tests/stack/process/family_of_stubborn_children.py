"""A stack in small, started and killed by test_crash.py: prints the pids of the tree it started, then waits."""

import asyncio
import os
import signal
import sys

from trainstack.process.processes import ProcessGuard

# Ignores SIGTERM, starts a grandchild in a new session and one without any environment.
CHILD = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
sleep = [sys.executable, "-c", "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"]
moved = subprocess.Popen(sleep, start_new_session=True, stdout=subprocess.PIPE)
bare = subprocess.Popen(sleep, env={}, stdout=subprocess.PIPE)
moved.stdout.readline(), bare.stdout.readline()
print(os.getpid(), moved.pid, bare.pid, flush=True)
time.sleep(600)
"""


async def main() -> None:
    guard = ProcessGuard(grace_s=0.2)
    pids: asyncio.Queue[str] = asyncio.Queue()

    def heard(_stream: object, lines: list[bytes]) -> None:
        for line in lines:
            pids.put_nowait(line.decode())

    children = [
        guard.start([sys.executable, "-c", CHILD], env={"PATH": os.environ["PATH"]}, on_lines=heard)
        for _ in range(2)
    ]
    print(await pids.get(), await pids.get(), guard.watcher_pid, flush=True)  # noqa: T201  the test reads it
    await asyncio.gather(*(child.wait() for child in children))


# A shell that starts the tests in its background has SIGINT ignored by all that follows.
signal.signal(signal.SIGINT, signal.default_int_handler)
asyncio.run(main())
