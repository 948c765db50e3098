"""python -m trainmaster.local.storage --dir DIR [--port PORT]: run only the emulator.

The first line of output is its URL.

If PUBSUB_EMULATOR_HOST is set, notifications are published there; otherwise they are kept.
"""

import os
import sys

from trainmaster.local.alone import run_alone
from trainmaster.local.publisher import publisher_to
from trainmaster.local.storage.server import served

if __name__ == "__main__":
    with publisher_to(os.environ.get("PUBSUB_EMULATOR_HOST")) as publish:
        sys.exit(run_alone("storage", lambda folder, port: served(folder, publish=publish, port=port)))
