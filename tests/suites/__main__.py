"""Run the suites of other people's clients against the stack, and count what passes: `python -m tests.suites --help`."""

import argparse
import signal
import sys
from pathlib import Path

from tests.suites.outcomes import Score
from tests.suites.page import PAGE, SCORES, keep_score, page_text, read_scores, table_text
from tests.suites.running import make_environment, run_suite
from tests.suites.suite import SUITES


def main() -> None:
    """Run the chosen suites, or write the page."""
    signal.signal(signal.SIGTERM, _stop)
    options = _options()
    if options.checkouts:
        python = make_environment(options.environment.absolute())
        for suite in SUITES:
            if suite.name in (options.only or [suite.name]):
                score = run_suite(suite, options.checkouts, python, chosen=tuple(options.words))
                _say(score)
                keep_score(score, SCORES if options.save else options.json)
    if options.page or options.save:
        PAGE.write_text(page_text(read_scores(SCORES)), encoding="utf-8")


def _stop(number: int, _frame: object) -> None:
    """End as after Ctrl-C, so that the stack ends too."""
    sys.exit(128 + number)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.suites", description=__doc__)
    parser.add_argument("--checkouts", type=Path, metavar="DIR", help="the folder of clones")
    parser.add_argument(
        "--only", action="append", choices=[suite.name for suite in SUITES], help="repeatable"
    )
    parser.add_argument(
        "--environment", type=Path, default=Path("build/suites"), metavar="DIR", help="made if absent"
    )
    parser.add_argument("--json", type=Path, default=Path("build/suites.json"), help="where the scores go")
    parser.add_argument("--save", action="store_true", help="into the committed scores")
    parser.add_argument("--page", action="store_true", help="write docs/reference/clients.md")
    parser.add_argument("words", nargs="*", help="words of pytest in place of the suite's tests, after --")
    return parser.parse_args()


def _say(score: Score) -> None:
    print(f"\n{table_text([score])}")
    for kind, causes in score.causes.items():
        for cause, tests in causes.items():
            print(f"{len(tests):4} {kind:8} {cause}  {tests[0]}")


if __name__ == "__main__":
    main()
