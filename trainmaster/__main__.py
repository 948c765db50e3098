"""The command: `trainmaster`, and `python -m trainmaster` from a checkout."""

import sys


def main() -> int:
    """Run the command line's verb, and return its exit status."""
    try:
        # Here, so that Ctrl-C during the first imports shows no traceback.
        from trainmaster.cli.command import main as run

        return run()
    except KeyboardInterrupt:
        sys.stderr.write("Stopped.\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
