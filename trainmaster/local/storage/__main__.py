"""python -m trainmaster.local.storage --dir DIR [--port PORT]: the emulator alone. Its first line is its URL.

With PUBSUB_EMULATOR_HOST set, notifications are published there; without, they are kept.
"""

import argparse
import asyncio
import logging
import os
import signal
import sys

from trainmaster.local.storage.pubsub import Publisher
from trainmaster.local.storage.serving import served


async def _serve(directory: str, port: int) -> None:
    host = os.environ.get("PUBSUB_EMULATOR_HOST")
    publisher = Publisher(host) if host else None
    leave = asyncio.Event()
    for each in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(each, leave.set)
    async with served(directory, publish=publisher, port=port) as url:
        sys.stdout.write(f"{url}\n")
        sys.stdout.flush()
        await leave.wait()
    if publisher:
        publisher.close()


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m trainmaster.local.storage", description="Cloud Storage on this machine."
    )
    parser.add_argument("--dir", required=True, help="directory of the objects, made if need be")
    parser.add_argument(
        "--port", type=int, default=0, help="port on 127.0.0.1; 0, the default, picks a free one"
    )
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    try:
        asyncio.run(_serve(arguments.dir, arguments.port))
    except (OSError, RuntimeError) as fault:
        sys.stderr.write(f"{fault}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
