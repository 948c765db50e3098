"""python -m trainmaster.local.pubsub --dir DIR [--port 0]."""

import argparse
import asyncio
import logging
import signal
from pathlib import Path

from trainmaster.local.pubsub.server import PubSub


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m trainmaster.local.pubsub", description="Cloud Pub/Sub on this machine."
    )
    parser.add_argument("--dir", required=True, type=Path, help="folder of the state, created when missing")
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 picks a free one")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    asyncio.run(_run(options.dir, options.port))


async def _run(folder: Path, port: int) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    emulator = PubSub(dir=folder)
    try:
        bound = await emulator.start(port)
        print(f"export PUBSUB_EMULATOR_HOST=127.0.0.1:{bound}", flush=True)  # noqa: T201  # what the caller reads
        await ended.wait()
    finally:
        await emulator.stop()


main()
