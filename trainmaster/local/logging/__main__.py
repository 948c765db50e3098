"""python -m trainmaster.local.logging --dir DIR [--port PORT]; sinks publish to PUBSUB_EMULATOR_HOST where that is set."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from trainmaster.local.alone import environment_publisher, run_alone
from trainmaster.local.logging.server import served


@asynccontextmanager
async def _serve(folder: Path, port: int) -> AsyncIterator[str]:
    async with environment_publisher() as publish, served(folder, publish=publish, port=port) as url:
        yield url


if __name__ == "__main__":
    sys.exit(run_alone("logging", _serve, says="export LOGGING_EMULATOR_HOST={}"))
