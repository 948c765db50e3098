"""The command, where it is not installed: python -m trainmaster."""

import sys

from trainmaster.cli.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
