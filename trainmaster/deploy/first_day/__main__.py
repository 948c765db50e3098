"""Deploy to a project, run four small jobs, and save what the services answered as fixtures: docs/how-to/deploy.md.

python -m trainmaster.deploy.first_day (--project ID [--region REGION] | --state DIR) [--fixtures DIR] [--yes]
"""

import argparse
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from trainmaster.client.clients import Clients
from trainmaster.client.context import Context, context_in_cloud, context_of_stack
from trainmaster.client.stack import environment_on
from trainmaster.deploy.first_day.day import SUMMARY, TRAINMASTER, Day
from trainmaster.deploy.first_day.steps import examine, prepare_cloud, provide_image, take_runs

COST_MAX_USD = 1
"""By the price table, of all machines together in any region; a test adds them up."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Return the exit status: 0 every step was good, 1 one was not, 2 nothing was begun, 130 it was interrupted."""
    given = _parsed(arguments)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that it ends the runs, as Ctrl-C does
    try:
        if (refusal := _why_unusable(given.fixtures)) is not None:
            print(refusal, file=sys.stderr)
            return 2
        if given.state is not None:
            return _on_stack(given.state, given.fixtures)
        context = context_in_cloud(given.project, given.region)
        if not _is_agreed(context, is_agreed=given.yes):
            return 2
        return _take(Day(context), given.fixtures, prepare_cloud)
    except KeyboardInterrupt:
        return 130


def _on_stack(state: Path, fixtures: Path) -> int:
    print(
        f"Nothing is deployed: the start of the stack on {state} takes the place of check and deploy.",
        flush=True,
    )
    up = subprocess.run((*TRAINMASTER, "up", "--detach", "--state", str(state)), check=False)
    if up.returncode != 0:
        return up.returncode
    context = context_of_stack(environment_on(state), state)
    return _take(Day(context), fixtures, partial(provide_image, state=state))


def _take(day: Day, fixtures: Path, prepare: Callable[[Day], bool]) -> int:
    try:
        if prepare(day):
            examine(day)
            with Clients(day.context) as clients:
                take_runs(day, clients)
    finally:
        print(day.save(fixtures))
    return 0 if day.is_good else 1


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--project", metavar="ID", help="a project in Google Cloud with billing")
    where.add_argument(
        "--state",
        type=Path,
        metavar="DIR",
        help="the folder of a local stack, which is started unless it runs",
    )
    parser.add_argument("--region", default="us-central1")
    parser.add_argument(
        "--fixtures",
        type=Path,
        default=Path("build/first-day"),
        metavar="DIR",
        help="an empty folder, or one of an earlier first day",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask before anything is deployed")
    return parser.parse_args(arguments)


def _why_unusable(fixtures: Path) -> str | None:
    """Why the folder cannot take the fixtures; None once it is there, without those of an earlier first day."""
    try:
        fixtures.mkdir(parents=True, exist_ok=True)
        if any(fixtures.iterdir()) and not (fixtures / f"{SUMMARY}.json").exists():
            return f"{fixtures} has other files. Name an empty folder: FIXTURES=DIR, or --fixtures DIR"
        for old in (*fixtures.glob("*.json"), fixtures / "answers.md"):
            old.unlink(missing_ok=True)
        (fixtures / f"{SUMMARY}.json").write_text("{}\n", encoding="utf-8")
    except OSError as error:
        return f"{fixtures} cannot be written: {error.strerror or error}. Name another folder: FIXTURES=DIR, or --fixtures DIR"
    return None


def _is_agreed(context: Context, *, is_agreed: bool) -> bool:
    undeploy = f"make undeploy PROJECT={context.project} REGION={context.region}"
    print(
        f"Trainmaster is deployed to {context.project} in {context.region}, or updated there, and four small runs start. "
        f"Their machines cost less than {COST_MAX_USD} USD. The deployment stays, and costs up to 18.50 USD a month even "
        f"idle, until you remove it: {undeploy}",
        flush=True,
    )
    if is_agreed:
        return True
    if not sys.stdin.isatty():
        print("Nothing was begun. To agree: YES=1, or --yes", file=sys.stderr)
        return False
    return input("Continue? [y/N] ").strip().lower() in ("y", "yes")


if __name__ == "__main__":
    sys.exit(main())
