"""`python -m emulators up --state DIR`: the whole local stack; `down`, `status` and `preempt` go with it."""

import sys

from emulators.stack.command import main

if __name__ == "__main__":
    sys.exit(main())
