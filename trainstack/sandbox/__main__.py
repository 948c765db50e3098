"""Runs one program in a confinement, and ends as it does.

Run as `python -I -S __main__.py PLAN`; see `launch`.
"""

import os
import sys

if __name__ == "__main__":
    # Run by its path, because -I leaves out this package's own place. Last: the standard library comes first.
    sys.path.append(os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 2)))
    from trainstack.sandbox.launch import main

    sys.exit(main(sys.argv[1:]))
