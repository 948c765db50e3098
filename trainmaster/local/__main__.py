"""`python -m trainmaster.local up --state DIR`: the whole local stack; `down`, `status` and `preempt` go with it."""

import os
import sys

from trainmaster.local.stack.command import main

if __name__ == "__main__":
    status = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # Nothing is left to end, and Python takes a second to take the loaded libraries down one by one.
    os._exit(status)
