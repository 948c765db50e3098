"""python -m trainmaster.local.logging --dir DIR [--port 0] [--pubsub HOST:PORT]."""

import argparse
import asyncio
import logging
import signal
from pathlib import Path

from trainmaster.local.logging.server import serving_logging


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m trainmaster.local.logging", description="Cloud Logging on this machine."
    )
    parser.add_argument("--dir", required=True, type=Path, help="folder of the state, created when missing")
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 picks a free one")
    parser.add_argument("--pubsub", help="host:port of Pub/Sub for sinks; default PUBSUB_EMULATOR_HOST")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    asyncio.run(_run(options.dir, options.pubsub, options.port))


async def _run(folder: Path, pubsub: str | None, port: int) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    async with serving_logging(folder, pubsub, port=port) as url:
        print(f"export LOGGING_EMULATOR_HOST={url}", flush=True)  # noqa: T201  # what the caller reads
        await ended.wait()


main()
