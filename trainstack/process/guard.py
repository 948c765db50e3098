"""The watcher: ends a stack's processes when the stack is gone.

Started by `ProcessGuard` as `python -m trainstack.process.guard TOKEN GRACE_S` with the read end of a
pipe as standard input. The stack holds the only write end, so the kernel reports its end in every case, even
SIGKILL.

PR_SET_PDEATHSIG would end children only, not what they start, and control groups need privileges. The mark in
the environment survives `setsid` and double forks.
"""

import os
import signal
import sys

from trainstack.process import family

_SCANS_AFTER_CRASH = 3


def main() -> None:
    """Wait for end of file on standard input, end every process that carries the token, then exit."""
    token, grace_s = sys.argv[1], float(sys.argv[2])
    for number in family.IGNORED:
        signal.signal(number, signal.SIG_IGN)
    farewell = b""
    while message := os.read(0, 64):
        farewell += message
    family.end(token, grace_s=grace_s, empty_scans=1 if farewell == family.CLEAN else _SCANS_AFTER_CRASH)


if __name__ == "__main__":
    main()
