"""`trainmaster models`: all models, with their runs and champions."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from trainmaster.cli.exits import ExitStatus
from trainmaster.cli.rules.screens import ABSENT
from trainmaster.cli.table import print_table
from trainmaster.cli.verb import (
    JSON,
    NAME,
    TABLE,
    YAML,
    output_option,
    print_data,
    print_names,
    takes_context,
    talk,
)

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients
    from trainmaster.client.rules.models import ListedModel


@click.command()
@output_option(TABLE, JSON, YAML, NAME)
@takes_context
def models(clients: "Clients", output: str) -> int:
    """List all models of the newest 20,000 runs, and those with a champion, which * marks.

    Costs a storage operation for each thousand runs, and one for each champion. `trainmaster champions` shows more of
    these, and `trainmaster ls --model NAME` the runs of a model.

    Exit status: 0 done, 1 a champion cannot be read; the others are listed.
    """
    from trainmaster.client.rules.champions import list_champions
    from trainmaster.client.rules.models import model_list, models_of
    from trainmaster.client.runs.listing import KeptIndex

    rows = KeptIndex(clients).look()
    champions, problems = list_champions(clients)
    found = models_of(rows, champions)
    if output == NAME:
        print_names(each.name for each in found)
    elif output != TABLE:
        print_data(model_list(found, rows), output)
    elif found:
        print_table([_row(each, datetime.now(UTC)) for each in found], spare=("CHAMPION", "METRICS", "AGE"))
    else:
        talk(f"No models in {clients.context.title}. Submit a request: trainmaster submit FILE")
    for problem in problems:
        talk(problem)
    return ExitStatus.FINDING if problems else ExitStatus.DONE


def _row(model: "ListedModel", now: datetime) -> dict[str, str]:
    from trainmaster.client.shown.champion_lines import value_text
    from trainmaster.client.terminal import one_line
    from trainmaster.client.times import span

    latest = model.latest
    current = model.champion.champion.current if model.champion else None
    metrics = ", ".join(f"{name} {value:.4g}" for name, value in latest.metrics.items()) if latest else ""
    return {
        "MODEL": f"{one_line(model.name)}{'*' if current else ''}",
        "RUNS": str(model.runs),
        "LATEST": latest.run_id if latest else ABSENT,
        "STATE": latest.state if latest else ABSENT,
        "AGE": span(now - latest.created_at) if latest else ABSENT,
        "METRICS": one_line(metrics) or ABSENT,
        "CHAMPION": f"{current.run_id} with {one_line(value_text(current))}" if current else ABSENT,
    }
