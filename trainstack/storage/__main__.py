"""python -m trainstack.storage --dir DIR [--port PORT]: run only the emulator.

The first line of output is its URL.

If PUBSUB_EMULATOR_HOST is set, notifications are published there; otherwise they are kept.
"""

import os
import sys

from trainstack.alone import run_alone
from trainstack.http import serving
from trainstack.publisher import publisher_to
from trainstack.storage.server import Storage

if __name__ == "__main__":
    with publisher_to(os.environ.get("PUBSUB_EMULATOR_HOST")) as publish:
        sys.exit(
            run_alone(
                "storage", lambda folder, port: serving(Storage(dir=folder, publish=publish), port=port)
            )
        )
