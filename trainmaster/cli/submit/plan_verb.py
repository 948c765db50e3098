"""`trainmaster plan`: what would happen to a request, and why. Submits nothing."""

import json
import shlex
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainmaster.cli.exits import ExitStatus, Stop
from trainmaster.cli.submit.options import set_option
from trainmaster.cli.verb import (
    JSON,
    TABLE,
    YAML,
    context_option,
    context_or_names,
    output_option,
    print_for_programs,
    takes_include,
    takes_team,
    talk,
)
from trainmaster.client.context import Context

if TYPE_CHECKING:
    from trainmaster.client.plan.plan import Plan
    from trainmaster.client.submission.edits import Edits
    from trainmaster.client.submission.examination import Examination
    from trainmaster.client.submission.source import RequestSource
    from trainmaster.orchestrator.core.runs.record import RunRecord

RUNNER_AT = 2
"""The place of RUNNER in a script's command: trainmaster/orchestrator/core/requests/script.py."""


@click.command()
@click.argument("file")
@set_option
@click.option("--key", help="the idempotency key that it would be published with, instead of dropped")
@click.option("--policy", type=Path, metavar="FILE", help="plan offline, with this policy")
@click.option(
    "--for",
    "form",
    type=click.Choice(["api", "gcloud"]),
    help="print only the job, as one of your own: the body of the API's create call, or the file for gcloud's --config",
)
@click.option(
    "--markdown",
    is_flag=True,
    help="print a page for a comment on GitHub, with the difference to the last run",
)
@context_option
@takes_include
@takes_team
@output_option(TABLE, JSON, YAML)
def plan(
    *,
    file: str,
    settings: tuple[str, ...],
    key: str | None,
    policy: Path | None,
    form: str | None,
    markdown: bool,
    context: str | None,
    include: tuple[str, ...],
    output: str,
) -> int:
    """Show what would happen to the request in FILE, and why; - reads standard input. Submits nothing.

    Shows the request as the service reads it, the job and the cost of each candidate, and
    whether the run would start at once or wait, and behind which runs. With --policy, or without a context and a
    running stack of this folder, it contacts no service and lists what it could not check.

    With --for, it prints the job of a request in any dialect for use without Trainmaster: the display name is the
    model's, and no label is a run's. No service is asked, and no policy is checked but that of --policy.

    With --markdown, it prints a page for GitHub, also of a request that would be refused, and compares the request with the
    last run of its model.

    Exit status: 0 the request would be accepted, 2 it would be refused, for its faults or because a cap is reached; with
    --markdown, 1 in place of 2.
    """
    from trainmaster.client.submission.edits import Edits
    from trainmaster.client.submission.settings import parse_settings
    from trainmaster.client.submission.source import read_source

    if markdown and (form is not None or output != TABLE):
        raise click.UsageError("--markdown takes neither --for nor --output.")
    where, asks = context_or_names(context, asks=policy is None and form is None)
    source = read_source(file, sys.stdin.buffer)
    edits = Edits(settings=parse_settings(settings), include=include)
    if form is not None:
        return _print_own_job(source, edits, where, policy, form, as_json=output == JSON)
    found, made, last = _examine_and_plan(source, edits, where, policy, key, asks=asks, compares=markdown)
    if markdown:
        return _print_page(found, made, last)
    if made is None:
        raise _refusal(found)
    if not print_for_programs(output, lambda: made.document):
        _print_plan(made)
    talk(f"Planned for project {where.project}, region {where.region} ({where.chosen_by}).")
    talk("\n".join(["Nothing was submitted. Not looked at:", *(f"  {each}" for each in made.not_checked)]))
    return ExitStatus.USAGE if _is_refused(made) else ExitStatus.DONE


def _examine_and_plan(
    source: "RequestSource",
    edits: "Edits",
    where: Context,
    policy: Path | None,
    key: str | None,
    *,
    asks: bool,
    compares: bool,
) -> "tuple[Examination, Plan | None, RunRecord | None]":
    from trainmaster.client.clients import Clients
    from trainmaster.client.plan.plan import last_run, plan_of, plan_with_ledger
    from trainmaster.client.submission.examination import examination_of
    from trainmaster.client.submission.terms import deployed_terms, terms_with_policy

    is_message = key is not None
    if not asks:
        found = examination_of(source, terms_with_policy(where, policy), edits, is_message=is_message)
        return found, plan_of(found), None
    with Clients(where) as clients:
        found = examination_of(source, deployed_terms(clients), edits, is_message=is_message)
        made = plan_with_ledger(clients, found, key=key, now=datetime.now(UTC))
        return found, made, last_run(clients, found) if compares else None


def _print_page(found: "Examination", made: "Plan | None", last: "RunRecord | None") -> int:
    from trainmaster.cli.faults import problem_lines
    from trainmaster.client.plan.markdown import block, plan_page

    if made is None:
        faults = click.unstyle("\n".join(problem_lines(found))).splitlines()
        click.echo(block("The service would refuse this request", faults), nl=False)
        return ExitStatus.FINDING
    click.echo(plan_page(made, last, datetime.now(UTC)), nl=False)
    return ExitStatus.FINDING if _is_refused(made) else ExitStatus.DONE


def _is_refused(plan: "Plan") -> bool:
    return plan.outlook is not None and plan.outlook.verdict == "refused"


def _print_plan(plan: "Plan") -> None:
    """What would happen first, then the request and each job as YAML."""
    from trainmaster.cli.table import print_facts
    from trainmaster.client.plan.facts import plan_facts

    print_facts(plan_facts(plan))
    _print_yaml("The request, as the service reads it", plan.request)
    for job in plan.jobs:
        what = "The job" if job.label == "job" else job.label.capitalize()
        _print_yaml(
            f"{what}, as Vertex AI gets it: POST {job.parent}/{job.kind}", _with_short_commands(job.body)
        )


def _with_short_commands(document: Any) -> Any:  # Any: JSON
    """The document with one line in place of the program that fetches and starts a packed script."""
    from trainmaster.orchestrator.core.requests.script import RUNNER

    if isinstance(document, Mapping):
        return {key: _with_short_commands(value) for key, value in document.items()}
    if not isinstance(document, list | tuple):
        return document
    if len(document) > RUNNER_AT + 2 and document[RUNNER_AT] == RUNNER:
        archive, launcher, *program = document[RUNNER_AT + 1 :]
        start = "" if launcher == "none" else f"{launcher} "
        line = f"# runs {start}{' '.join(program)} of {archive}; all of it: -o yaml"
        return [*document[:RUNNER_AT], line, *document[RUNNER_AT + 1 :]]
    return [_with_short_commands(each) for each in document]


def _print_yaml(title: str, document: object) -> None:
    from trainmaster.cli.yaml_text import yaml_text

    click.echo(f"\n{click.style(title, bold=True)}")
    click.echo(yaml_text(document), nl=False)


def _refusal(found: "Examination") -> Stop:
    from trainmaster.cli.faults import problem_lines

    talk("\n".join(problem_lines(found)))
    return Stop(ExitStatus.USAGE, "The service would refuse this request.")


def _print_own_job(
    source: "RequestSource",
    edits: "Edits",
    where: Context,
    policy: Path | None,
    form: str,
    *,
    as_json: bool,
) -> int:
    from trainmaster.cli.faults import WARNING, fault_lines
    from trainmaster.cli.submit.own_job import Form, in_form, notes_on, own_job, region_of
    from trainmaster.cli.yaml_text import yaml_text
    from trainmaster.client.submission.examination import examination_of
    from trainmaster.client.submission.terms import terms_with_policy, terms_without_policy

    if policy is None:
        where = replace(where, region=region_of(source.read.value) or where.region)
    terms = terms_without_policy(where) if policy is None else terms_with_policy(where, policy)
    found = examination_of(source, terms, edits)
    if found.has_local_script:
        raise Stop(
            ExitStatus.USAGE,
            "The script is only on this machine, so there is no job of it to print yet. "
            f"See the job that `trainmaster submit` would start: trainmaster plan {shlex.quote(source.file)}",
        )
    if found.request is None:
        raise _refusal(found)
    job = own_job(found.request, where)
    talk("\n".join(notes_on(job, Form(form), found.request)))
    for line in fault_lines(found.warnings, source.file, WARNING):
        talk(line)
    if policy is None:
        talk("not checked: what the deployment's policy allows; --policy FILE checks it")
    document = in_form(job, Form(form))
    click.echo(
        json.dumps(document, indent=2, ensure_ascii=False) if as_json else yaml_text(document).rstrip("\n")
    )
    return ExitStatus.DONE
