"""`trainmaster study`: any tuning, on the local stack or in the cloud, as a table, as JSON and as a page."""

import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from trainmaster.cli.exits import ExitStatus, Stop, why_unwritable
from trainmaster.cli.study.best_request import best_request
from trainmaster.cli.verb import (
    JSON,
    TABLE,
    YAML,
    output_option,
    print_data,
    print_for_programs,
    print_names,
    takes_context,
)
from trainmaster.client.clients import Clients
from trainmaster.client.shown.run_lines import failed_trial_facts
from trainmaster.client.study.document import study_document
from trainmaster.client.study.read import find_tuning
from trainmaster.client.study.study import Study, counts, number
from trainmaster.client.terminal import one_line, plural

PIPE_WIDTH = 10_000


@click.command()
@click.argument("run", metavar="RUN|JOB")
@click.option(
    "--html",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="write charts and trials into one HTML file, which opens without a network",
)
@click.option(
    "--request", is_flag=True, help="print the request that trains with the best trial's parameters"
)
@output_option(TABLE, JSON, YAML)
@takes_context
def study(clients: Clients, run: str, html: Path | None, request: bool, output: str) -> int:
    """Show a tuning: its trials, their parameters and results; with --html drawn as on the console's page.

    RUN is a run's id or its last part, latest, the file that started it, or the id or key of a message. JOB is the name of any tuning job,
    projects/PROJECT/locations/REGION/hyperparameterTuningJobs/ID.
    """
    if html == Path():
        raise click.UsageError("--html must not be empty: name a file, for example study.html.")
    tuning = find_tuning(clients, run)
    if request:
        print_data(best_request(tuning), YAML)
    elif html is not None:
        from trainmaster.web.study.file import study_file

        _write(html, study_file(tuning, at=datetime.now(UTC)))
        print_names([str(html)])
    elif not print_for_programs(output, lambda: study_document(tuning)):
        _print_table(tuning.study)
        for _, lines in failed_trial_facts(tuning.run.record) if tuning.run else ():
            print_names(map(one_line, lines))  # why the first trials failed, as the run's record has it
    return ExitStatus.DONE


def _write(file: Path, text: str) -> None:
    """Write the file, and the folders above it that are missing."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        where = str(error.filename or file)
        raise Stop(ExitStatus.USAGE, f"Cannot write {where!r}: {why_unwritable(error)}") from error


def _print_table(found: Study) -> None:
    """Every trial; on a terminal that is too narrow, columns are left out, and in a pipe all are whole."""
    from rich.console import Console

    from trainmaster.cli.study.board import TrialBoard

    board = TrialBoard(study=found, at=datetime.now(UTC))
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else PIPE_WIDTH
    console = Console(width=width, highlight=False)
    console.print(board.title, markup=False)
    console.print(board.table(width=width, height=len(found.trials) + 2))
    console.print(_summary(found), markup=False)


def _summary(study: Study) -> str:
    """For example `6 trials: 5 succeeded, 1 infeasible. Best: trial 4, accuracy 0.93`."""
    said = f"{plural(len(study.trials), 'trial')}: {counts(study.trials)}."
    best = study.best
    if best is None or best.result is None:
        return f"{said} None has a result."
    metric = one_line(study.metric, 40)
    return f"{said} Best: trial {one_line(best.id)}, {metric} {number(best.result)}"
