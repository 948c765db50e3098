"""Deploy to a project, run four small jobs, and save what the services answered as fixtures: docs/how-to/deploy.md.

python -m tools.first_day (--project ID [--region REGION] | --state DIR) [--fixtures DIR] [--yes]
"""

import argparse
import signal
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tools.first_day.day import FirstDay
from tools.first_day.steps import TRAINMASTER, take_day
from trainmaster.client.context import Context, context_in_cloud, context_of_stack
from trainstack.find import NoStack, environment_on

COST_MAX_USD = 1
"""By the price table, of all machines together in any region; a test adds them up."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit status: 0 every step was good, 1 one was not, 2 nothing was begun, 130 it was interrupted."""
    given = _options_from(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that it ends the runs, as Ctrl-C does
    folder = given.fixtures / f"{datetime.now(UTC):%Y%m%d-%H%M%S}"
    try:
        context = _stack_on(given.state) if given.state else context_in_cloud(given.project, given.region)
        if not (given.state or given.yes or _is_agreed(context)):
            return 2
        folder.mkdir(parents=True)
    except (NoStack, OSError, KeyboardInterrupt) as error:
        print(f"Nothing was begun. {error}", file=sys.stderr)
        return 2
    day = FirstDay(context, folder)
    try:
        take_day(day)
    except KeyboardInterrupt:
        return 130
    return 0 if day.is_good else 1


def _options_from(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--project", metavar="ID", help="a project in Google Cloud with billing")
    where.add_argument("--state", type=Path, metavar="DIR", help="of a local stack, started unless it runs")
    parser.add_argument("--region", default="us-central1")
    parser.add_argument("--fixtures", type=Path, default="build/first-day", help="gets a folder each day")
    parser.add_argument("--yes", action="store_true", help="do not ask before anything is deployed")
    return parser.parse_args(arguments)


def _stack_on(state: Path) -> Context:
    """The stack on the folder, which runs.

    Raises:
        NoStack: it could not be started.
    """
    print("Nothing is deployed: the start of a local stack takes the place of check and deploy.", flush=True)
    subprocess.run((*TRAINMASTER, "up", "--detach", "--state", str(state)), check=False)
    return context_of_stack(environment_on(state), state)


def _is_agreed(context: Context) -> bool:
    undeploy = f"make undeploy PROJECT={context.project} REGION={context.region}"
    print(
        f"Trainmaster is deployed to {context.project} in {context.region}, or updated there, and four small runs start. "
        f"Their machines cost less than {COST_MAX_USD} USD. The deployment stays, and costs up to 18.50 USD a month even "
        f"idle, until you remove it: {undeploy}",
        flush=True,
    )
    if sys.stdin.isatty():
        return input("Continue? [y/N] ").strip().lower() in ("y", "yes")
    print("Nothing was begun. To agree: YES=1, or --yes", file=sys.stderr)
    return False


if __name__ == "__main__":
    sys.exit(main())
