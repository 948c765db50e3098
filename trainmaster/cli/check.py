"""`trainmaster check`: every fault of requests, rules and orders in files, before anything is submitted.

It takes the folder's own stack, never another that happens to run, so its answer depends only on the folder
and the user's choice.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import click

from trainmaster.cli.exits import Exit
from trainmaster.cli.faults import WARNING, fault_lines
from trainmaster.cli.verb import (
    JSON,
    TABLE,
    YAML,
    chosen_team,
    context_of,
    output_option,
    print_data,
    settings_folder,
    takes_include,
    takes_team,
    talk,
)
from trainmaster.client.checking import Checked, check
from trainmaster.client.context import (
    LOCAL,
    VARIABLE,
    Context,
    NoContext,
    context_in_cloud,
    context_of_state,
    kept_choice,
)
from trainmaster.client.request_files import (
    SHIPPED_POLICY,
    STDIN,
    UnusableFile,
    buckets_of,
    read_input,
    read_policy,
    rules_for,
)
from trainmaster.client.submission.scripts import with_script_faults
from trainmaster.client.terminal import plural
from trainstack.find import own_state

LOCAL_PROJECT, LOCAL_REGION = "trainmaster-local", "us-central1"
"""Those of `trainmaster up` without options."""


@click.command(name="check")
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option(
    "--policy", type=Path, metavar="FILE", help="the policy to check against; default: the shipped one"
)
@click.option("--project", help="the project that would run it; default: the context's")
@click.option("--region", help="the region that would run it; default: the context's")
@click.option(
    "--context", metavar="NAME", help="local, local:DIR or PROJECT/REGION; default: the current one"
)
@takes_include
@takes_team
@output_option(TABLE, JSON, YAML)
def check_files(
    *,
    files: Sequence[str],
    policy: Path | None,
    project: str | None,
    region: str | None,
    context: str | None,
    include: tuple[str, ...],
    output: str,
) -> int:
    """Check each FILE, a request in any dialect, a rule or an order, and show every fault in its place; - is standard input.

    Nothing is submitted, and no service is asked. A fault is printed as FILE:LINE:COLUMN, with its line.

    Exit status: 0 no faults, 1 faults, 2 a file or the policy cannot be read.
    """
    where = _where(context, project, region)
    buckets = buckets_of(where)
    try:
        rules = rules_for(where, read_policy(policy or SHIPPED_POLICY, where))
    except UnusableFile as unusable:
        talk(str(unusable))
        return Exit.USAGE
    checked: list[Checked] = []
    unusable_files = 0
    for file in dict.fromkeys(files):
        try:
            content = read_input(file, sys.stdin.buffer)
            found = check(file, content, rules, buckets)
            root = Path() if file == STDIN else Path(file).parent
            checked.append(with_script_faults(found, content, root, rules, include=include))
        except UnusableFile as unusable:
            unusable_files += 1
            talk(str(unusable))
    if output != TABLE:
        print_data([each.document for each in checked], output)
    else:
        _print(checked)
    _say_what_was_not_checked(checked, where, policy)
    if unusable_files:
        return Exit.USAGE
    return Exit.FINDING if any(each.faults for each in checked) else Exit.DONE


def _where(context: str | None, project: str | None, region: str | None) -> Context:
    """The context, with the project and region that are given."""
    if project is not None and region is not None and context is None:
        by = "chosen by --project and --region"
        return replace(context_in_cloud(project, region), team=chosen_team(), chosen_by=by)
    chosen = _chosen(context)
    if project is None:
        return replace(chosen, region=region or chosen.region)
    return replace(
        context_in_cloud(project, region or chosen.region), team=chosen.team, chosen_by="chosen by --project"
    )


def _chosen(context: str | None) -> Context:
    """The context that is chosen; else the stack of this folder, running or not; else a local stack as `up` starts it.

    The stack of another folder is never taken because it runs: the answer would depend on what runs elsewhere.
    """
    settings = settings_folder()
    text = context or os.environ.get(VARIABLE) or kept_choice(settings)
    if text and text != LOCAL:
        try:
            return context_of(context)
        except NoContext as absent:  # no service is needed, only its names
            if absent.state is None or context is not None:
                raise
            stopped = f"because the stack on {str(absent.state)!r} is not running"
            return _of_state(absent.state, f"its names, {stopped}", stopped)
    state = own_state(Path.cwd(), settings)
    without = "because no context is chosen and this folder has no stack"
    return _of_state(state, f"the names of this folder's stack, {str(state)!r}", without)


def _of_state(state: Path | None, with_names: str, without: str) -> Context:
    """The names of the stack that runs or has run on the folder; without one, those of a new local stack."""
    found = None if state is None else context_of_state(state)
    if found is None:
        found, with_names = (
            context_in_cloud(LOCAL_PROJECT, LOCAL_REGION),
            f"those of a new local stack, {without}",
        )
    return replace(found, team=chosen_team(), chosen_by=with_names)


def _print(checked: Sequence[Checked]) -> None:
    for each in checked:
        for line in (*fault_lines(each.faults, each.file), *fault_lines(each.warnings, each.file, WARNING)):
            click.echo(line)
        click.echo(f"{each.file}: {each.kind}, {_count(each)}")


def _count(checked: Checked) -> str:
    counts = [(len(checked.faults), "fault"), (len(checked.warnings), "warning")]
    words = [plural(number, noun) for number, noun in counts if number]
    return ", ".join(words) or "no faults"


def _say_what_was_not_checked(checked: Sequence[Checked], where: Context, policy: Path | None) -> None:
    talk(f"Checked for project {where.project}, region {where.region} ({where.chosen_by}).")
    talk("\n".join(_not_checked(checked, policy)))


def _not_checked(checked: Sequence[Checked], policy: Path | None) -> Iterator[str]:
    yield "Not checked:"
    if policy is None:
        yield "  a deployment's own policy: this is the shipped one; --policy FILE takes another"
    for text in dict.fromkeys(text for each in checked for text in each.not_checked):
        yield f"  {text}"
