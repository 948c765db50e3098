"""`trainmaster check`: every fault of requests, rules and orders in files, before anything is submitted.

It takes the folder's own stack, never another that happens to run, so its answer depends only on the folder
and the user's choice.
"""

import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import click

from trainmaster.cli.exits import ExitStatus
from trainmaster.cli.faults import WARNING, fault_lines
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
from trainmaster.client.shown.rule_lines import when_lines
from trainmaster.client.submission.edits import Edits
from trainmaster.client.submission.examination import Examination, examination_of
from trainmaster.client.submission.kinds import FileKind
from trainmaster.client.submission.settings import parse_settings
from trainmaster.client.submission.source import UnusableFile, read_source
from trainmaster.client.submission.terms import Terms, terms_with_policy
from trainmaster.client.terminal import plural


@click.command(name="check")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "--policy", type=Path, metavar="FILE", help="the policy to check against; default: the shipped one"
)
@set_option
@context_option
@takes_include
@takes_team
@output_option(TABLE, JSON, YAML)
def check_files(
    *,
    files: Sequence[str],
    policy: Path | None,
    settings: tuple[str, ...],
    context: str | None,
    include: tuple[str, ...],
    output: str,
) -> int:
    """Check each FILE, a request in any dialect, a rule or an order, and show every fault in its place; - is standard input.

    Nothing is submitted, and no service is asked. A fault is printed as FILE:LINE:COLUMN, with its line.

    Exit status: 0 no faults, 1 faults, 2 a file or the policy cannot be read.
    """
    where, _ = context_or_names(context, asks=False)
    edits = Edits(settings=parse_settings(settings), include=include)
    terms = terms_with_policy(where, policy)
    found: list[Examination] = []
    unusable_files = 0
    for file in dict.fromkeys(files):
        try:
            found.append(examination_of(read_source(file, sys.stdin.buffer), terms, edits))
        except UnusableFile as unusable:
            unusable_files += 1
            talk(str(unusable))
    if settings and (others := [each.source.file for each in found if each.kind is not FileKind.REQUEST]):
        raise click.UsageError(f"--set changes requests alone: leave out {', '.join(others)}.")
    if not print_for_programs(output, lambda: [each.document for each in found]):
        _print_examinations(found)
    talk("\n".join(_notes(found, terms, policy)))
    if unusable_files:
        return ExitStatus.USAGE
    return ExitStatus.FINDING if any(each.faults for each in found) else ExitStatus.DONE


def _print_examinations(found: Sequence[Examination]) -> None:
    for each in found:
        file = each.source.file
        for line in (*fault_lines(each.faults, file), *fault_lines(each.warnings, file, WARNING)):
            click.echo(line)
        counts = [(len(each.faults), "fault"), (len(each.warnings), "warning")]
        words = [plural(number, noun) for number, noun in counts if number]
        click.echo(f"{file}: {each.kind}, {', '.join(words) or 'no faults'}")
        if each.request is not None and each.request.runs > 1:
            click.echo(f"{file}: {each.request.runs} runs. {each.bounds}".rstrip())
        for line in when_lines(each.rule, datetime.now(UTC)) if each.rule is not None else ():
            click.echo(f"{file}: {line}")


def _notes(found: Sequence[Examination], terms: Terms, policy: Path | None) -> Iterator[str]:
    where = terms.context
    yield f"Checked for project {where.project}, region {where.region} ({where.chosen_by})."
    yield "Not checked:"
    if policy is None:
        yield "  a deployment's own policy: this is the shipped one; --policy FILE takes another"
    for text in dict.fromkeys(text for each in found for text in each.not_checked):
        yield f"  {text}"
