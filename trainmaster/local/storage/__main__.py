"""python -m trainmaster.local.storage --dir DIR [--port PORT]: the emulator alone. Its first line is its URL.

With PUBSUB_EMULATOR_HOST set, notifications are published there; without, they are kept.
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from trainmaster.local.alone import environment_publisher, run_alone
from trainmaster.local.storage.server import served


@asynccontextmanager
async def _serve(folder: Path, port: int) -> AsyncIterator[str]:
    async with environment_publisher() as publish, served(folder, publish=publish, port=port) as url:
        yield url


if __name__ == "__main__":
    sys.exit(run_alone("storage", _serve))
