"""Runs one service without the stack: `python -m trainstack.SERVICE --dir DIR [--port PORT]`."""

import argparse
import asyncio
import logging
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

Serve = Callable[..., AbstractAsyncContextManager[str]]
"""Serves the state in a folder on a `port` (0: any free one) while the block runs; yields the service's
address.
"""


def run_alone(service: str, serve: Serve, *, says: str = "{}") -> int:
    """Serve until SIGINT or SIGTERM; return the exit status. The first line of output is `says` with the address."""
    parser = argparse.ArgumentParser(prog=f"python -m trainstack.{service}")
    parser.add_argument("--dir", required=True, type=Path, help="state folder; created if missing")
    parser.add_argument(
        "--port", type=int, default=0, help="port on 127.0.0.1; 0 picks a free one (default: 0)"
    )
    given = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    try:
        asyncio.run(_run(serve(given.dir, port=given.port), says))
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
