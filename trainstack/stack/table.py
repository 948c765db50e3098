"""The table that `up` prints when the stack is ready."""

import shlex
import sys
from collections.abc import Iterable
from pathlib import Path

from rich.box import ROUNDED
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from trainstack.functions.function import BucketTrigger, Function
from trainstack.stack.services import RunningServices
from trainstack.stack.topology import Topology

NOT_ENFORCED = "not enforced: --isolation none"
_WIDEST = 1000


def endpoints(
    services: RunningServices,
    topology: Topology,
    functions: Iterable[tuple[Function, str]],
    *,
    env_path: Path,
    enforced: bool,
) -> Table:
    """A table of all endpoints and folders. `functions` are the deployed ones with their URLs.

    `enforced`: whether the services refuse what accounts have no permission for.
    """
    table = Table(
        title=f"Trainmaster's local stack: project {topology.project}, region {topology.region}",
        box=ROUNDED,
        show_header=False,
        title_justify="left",
    )
    table.add_column(style="bold", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_row("Cloud Storage", services.storage_url)
    table.add_row("Pub/Sub", services.pubsub_host)
    table.add_row("Vertex AI", services.vertex_url)
    table.add_row("Cloud Logging", services.logging_url)
    table.add_row("Permissions", services.iam_url if enforced else f"{services.iam_url}  {NOT_ENFORCED}")
    if services.registry:
        table.add_row("Artifact Registry", services.registry)
    table.add_section()
    for function, url in functions:
        table.add_row(function.name, f"{url}  ← {_source(function)}")
    table.add_section()
    table.add_row("Drop requests into", str(services.buckets_dir / topology.buckets["inbox"] / "requests"))
    if data := topology.buckets.get("data"):
        table.add_row("Put data into", f"{services.buckets_dir / data}  → gs://{data}")
    table.add_row("In another shell", f"source {shlex.quote(str(env_path))}")
    return table


def show_table(table: Table, announcement: str) -> None:
    """Print the announcement, and the table.

    Lines are never wrapped, not even on a narrow terminal or in a pipe: users copy addresses from them.
    """
    sys.stdout.write(f"{announcement}\n")
    console = Console()
    unlimited = console.options.update(width=_WIDEST)
    Console(width=Measurement.get(console, unlimited, table).maximum).print(table)


def _source(function: Function) -> str:
    match function.trigger:
        case BucketTrigger(bucket=bucket):
            return f"gs://{bucket}"
        case trigger:
            return f"topic {trigger.topic}"
