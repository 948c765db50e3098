"""The command from a checkout: `python -m trainmaster` is `trainmaster`."""

import sys

from trainmaster.cli.command import main

if __name__ == "__main__":
    sys.exit(main())
