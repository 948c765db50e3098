"""python -m trainmaster.local.pubsub --dir DIR [--port PORT]."""

import sys

from trainmaster.local.alone import run_alone
from trainmaster.local.pubsub.server import served

if __name__ == "__main__":
    sys.exit(run_alone("pubsub", served, says="export PUBSUB_EMULATOR_HOST={}"))
