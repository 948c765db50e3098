"""The command line.

python -m console demo
"""

import argparse
import sys
from pathlib import Path


def main(arguments: list[str] | None = None) -> int:
    """The exit status of the verb that `arguments` name; argparse exits with 2 on unusable ones."""
    parser = argparse.ArgumentParser(prog="trainmaster", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    demo = verbs.add_parser("demo", help="watch a dropped request become a trained model, on this machine")
    demo.add_argument(
        "--state",
        type=Path,
        default=Path(".trainmaster/demo"),
        help="folder of the demo's local stack, emptied at the start (default: %(default)s)",
    )
    options = parser.parse_args(arguments)
    from console.demo import run_demo

    return run_demo(options.state)


if __name__ == "__main__":
    sys.exit(main())
