"""`up`: a stack in the foreground, until a signal ends it."""

import asyncio
import contextlib
import os
import signal
import threading

from trainmaster.local.stack.options import Options
from trainmaster.local.stack.stack import running_stack
from trainmaster.local.stack.state import StateFolder
from trainmaster.local.stack.table import endpoints, show
from trainmaster.local.stack.topology import Topology, read_topology

STOP_DEADLINE_S = 9.0
"""A stop that takes longer is cut short; the guard ends what is left."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_until_stopped(options: Options) -> None:
    """Run a stack until SIGINT, SIGTERM or SIGHUP.

    A second signal, or a stop that takes longer than STOP_DEADLINE_S, ends this process at once, with status 1.

    Raises:
        StackRefusedError: the stack cannot start.
    """
    topology = read_topology(options.topology, project=options.project, region=options.region)
    state = StateFolder(options.state)
    try:
        asyncio.run(_until_stopped(options, topology, state))
    finally:
        state.close()


async def _until_stopped(options: Options, topology: Topology, state: StateFolder) -> None:
    loop = asyncio.get_running_loop()
    running = asyncio.current_task()

    def at_once() -> None:
        state.withdraw()
        os._exit(1)

    def stop() -> None:
        state.withdraw()
        for number in _SIGNALS:
            loop.add_signal_handler(number, at_once)
        deadline = threading.Timer(STOP_DEADLINE_S, at_once)  # the loop may be over before its threads are
        deadline.daemon = True
        deadline.start()
        if running is not None:
            running.cancel()

    for number in _SIGNALS:
        loop.add_signal_handler(number, stop)
    with contextlib.suppress(asyncio.CancelledError):
        async with running_stack(options, topology, state) as stack:
            # So that a file can be copied there at once; the folders themselves are no objects.
            inbox = stack.services.buckets_dir / topology.buckets["inbox"]
            for folder in ("requests", "rules"):
                (inbox / folder).mkdir(parents=True, exist_ok=True)
            functions = [(instance.function, instance.url) for instance in stack.host.instances.values()]
            show(endpoints(stack.services, topology, functions, env_path=state.env_path))
            state.announce(stack.variables())
            await asyncio.Event().wait()
