"""python -m trainstack.pubsub --dir DIR [--port PORT]."""

import sys

from trainstack.alone import run_alone
from trainstack.pubsub.server import emulate

if __name__ == "__main__":
    sys.exit(run_alone("pubsub", emulate, says="export PUBSUB_EMULATOR_HOST={}"))
