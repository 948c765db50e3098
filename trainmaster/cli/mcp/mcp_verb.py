"""`trainmaster mcp`: the command as a server of the Model Context Protocol."""

import math
import os
import secrets
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import click

from trainmaster.cli.exits import ExitStatus
from trainmaster.cli.verb import chosen_team, context_of, context_option, takes_team


@click.command()
@click.option("--read-only", is_flag=True, help="leave out the tools that change or cost something")
@click.option("--budget-usd", "limit", type=click.FloatRange(0, 1e9), metavar="USD",
              help="the most that the session's runs may cost")  # fmt: skip
@click.option("--session", metavar="NAME",
              help="continue this session, whose runs count towards the budget; default: a new one")  # fmt: skip
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE",
              help="mark all that it does, for example agent=tuner; repeatable")  # fmt: skip
@click.option("--skill", is_flag=True, help="print the file that teaches the tools, and end")
@takes_team
@context_option
def mcp(
    *, read_only: bool, limit: float | None, session: str | None, labels: tuple[str, ...], skill: bool, context: str | None
) -> int:  # fmt: skip
    """Serve the other verbs as tools of the Model Context Protocol, on standard input and output.

    A client of the protocol starts and ends it. Whatever starts or ends a run, or changes a champion, takes two calls: the
    first says what would happen, the second needs its token. Files are read in the current folder and below it alone.

    Exit status: 0 standard input was closed, 2 wrong usage, 4 no stack is running, or the credentials are missing.
    """
    if skill:
        click.echo(Path(__file__).with_name("SKILL.md").read_text(encoding="utf-8"), nl=False)
        return ExitStatus.DONE
    if limit is not None and math.isnan(limit):
        raise click.UsageError(f"--budget-usd: {limit} is not an amount. Give US dollars, for example 5.")
    from trainmaster.cli.mcp.budget import Budget
    from trainmaster.cli.mcp.changes import Session
    from trainmaster.cli.mcp.server import serve
    from trainmaster.client.runs.listing import parse_labels
    from trainmaster.client.submission.sender import SENT_FOR_VARIABLE
    from trainmaster.client.submission.terms import schema
    from trainmaster.orchestrator.core.documents.validation import schema_faults
    from trainmaster.orchestrator.core.requests.request import REQUEST_SCHEMA
    from trainmaster.web.source import ConsoleSource

    own = {"session": session or f"mcp-{secrets.token_hex(4)}"}
    marks, team = {**parse_labels(labels), **own}, chosen_team()
    if "session" in parse_labels(labels):
        raise click.UsageError("--label session: name the session with --session.")
    if faults := schema_faults(schema(REQUEST_SCHEMA)["properties"]["labels"], marks):
        raise click.UsageError("\n".join(f"--label or --session: {fault}" for fault in faults))
    writes = not read_only
    source = ConsoleSource(lambda: replace(context_of(context, changes=writes), team=team), writable=writes)
    _ = source.clients.storage  # so that a missing stack or credentials are an error at once
    os.environ[SENT_FOR_VARIABLE] = ", ".join(f"{key}={value}" for key, value in marks.items())
    budget = Budget(None if limit is None else Decimal(str(limit)), own)
    serve(Session(source=source, folder=Path.cwd(), labels=marks, budget=budget))
    return ExitStatus.DONE
