"""`python -m trainmaster.inspect`."""

import os
import sys
from pathlib import Path

from trainmaster.inspect.command import main

STARTED_WITH = Path("/proc/self/environ")


def environment_at_start() -> dict[str, str]:
    """The variables this process was given. Importing `trainer` has changed one of them: which Keras TensorFlow takes."""
    try:
        text = os.fsdecode(STARTED_WITH.read_bytes())
    except OSError:
        return {name: value for name, value in os.environ.items() if name != "TF_USE_LEGACY_KERAS"}
    pairs = (pair.partition("=") for pair in text.split("\0"))
    return {name: value for name, equals, value in pairs if equals}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], environment_at_start()))
