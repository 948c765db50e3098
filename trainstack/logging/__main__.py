"""python -m trainstack.logging --dir DIR [--port PORT]; sinks publish to PUBSUB_EMULATOR_HOST if it is set."""

import functools
import os
import sys

from trainstack.alone import run_alone
from trainstack.logging.server import emulate

if __name__ == "__main__":
    serving = functools.partial(emulate, pubsub=os.environ.get("PUBSUB_EMULATOR_HOST"))
    sys.exit(run_alone("logging", serving, says="export LOGGING_EMULATOR_HOST={}"))
