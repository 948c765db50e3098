"""One service without the stack: `python -m trainmaster.local.SERVICE --dir DIR [--port PORT]`."""

import argparse
import asyncio
import logging
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

Serve = Callable[..., AbstractAsyncContextManager[str]]
"""The address of the service over a state folder, on a `port` (0: any), while the block runs."""


def run_alone(service: str, serve: Serve, *, says: str = "{}") -> int:
    """Serve until SIGINT or SIGTERM. The first line of output is `says` with the address; gives the exit status."""
    parser = argparse.ArgumentParser(prog=f"python -m trainmaster.local.{service}")
    parser.add_argument("--dir", required=True, type=Path, help="folder of the state, created when missing")
    parser.add_argument(
        "--port", type=int, default=0, help="port on 127.0.0.1; 0, the default, picks a free one"
    )
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    try:
        asyncio.run(_run(serve(options.dir, port=options.port), says))
    except (OSError, RuntimeError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


async def _run(serving: AbstractAsyncContextManager[str], says: str) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with serving as address:
        sys.stdout.write(f"{says.format(address)}\n")
        sys.stdout.flush()
        await ended.wait()
