"""`trainmaster models` and `champions`: list and serve models; list the best ones, show one, and restore an earlier one."""

import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from trainmaster.cli.exits import ExitStatus
from trainmaster.cli.rules.screens import ABSENT
from trainmaster.cli.runs.following import order_survives_interrupt
from trainmaster.cli.runs.ls import columns
from trainmaster.cli.table import print_facts, print_table
from trainmaster.cli.verb import (
    JSON,
    NAME,
    TABLE,
    YAML,
    output_option,
    print_for_programs,
    print_names,
    says_where,
    takes_context,
    takes_context_to_change,
    takes_team,
    talk,
    wait_option,
)
from trainmaster.client.clients import Clients
from trainmaster.client.shown.champion_lines import (
    lineage_facts,
    pending_lines,
    registry_facts,
    value_text,
    version_text,
)
from trainmaster.client.terminal import Fact, one_line
from trainmaster.client.times import minute, span
from trainmaster.orchestrator.core.champions.champion import Champion, Reign, Verdict
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.names import in_team
from trainmaster.orchestrator.core.policy.currency import money

if TYPE_CHECKING:
    from trainmaster.client.rules.champions import ListedModel
    from trainmaster.client.rules.serving import ServingEndpoint

LATEST = 5


class _ListsModels(click.Group):
    """Without a verb, `ls`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_option = not args or args[0].startswith("-")
        if is_option and not {*self.commands, *ctx.help_option_names}.intersection(args):
            args = ["ls", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_ListsModels)
def models() -> None:
    """List all models, or serve registered ones on endpoints. Without a verb: list."""


@models.command("ls", short_help="List all models, with their runs and champions.")
@output_option()
@takes_context
def list_models(clients: Clients, output: str) -> int:
    """List all models of the newest 20,000 runs, and those with a champion, which * marks.

    Costs a storage operation for each thousand runs, and one for each champion. `trainmaster champions` shows more of
    these, and `trainmaster ls --model NAME` the runs of a model.

    Exit status: 0 done, 1 a champion cannot be read; the others are listed.
    """
    from trainmaster.client.rules.champions import list_champions, model_list, models_of
    from trainmaster.client.runs.listing import KeptIndex

    rows = KeptIndex(clients).look().rows
    champions, problems = list_champions(clients)
    found = models_of(rows, champions)
    names, now = (each.name for each in found), datetime.now(UTC)
    if not print_for_programs(output, lambda: model_list(found, rows), names):
        print_table([_model_row(each, now) for each in found], spare=("CHAMPION", "METRICS", "AGE"))
        if not found:
            talk(f"No models in {clients.context.title}. Submit a request: trainmaster submit FILE")
    for problem in problems:
        talk(problem)
    return ExitStatus.FINDING if problems else ExitStatus.DONE


def _model_row(model: "ListedModel", now: datetime) -> dict[str, str]:
    latest = model.latest
    champion = model.champion.champion if model.champion else None
    current = champion.current if champion else None
    metrics = ", ".join(f"{name} {value:.4g}" for name, value in latest.metrics.items()) if latest else ""
    return {
        "MODEL": f"{one_line(model.name)}{'*' if current else ''}",
        "RUNS": str(model.runs),
        "LATEST": latest.run_id if latest else ABSENT,
        "STATE": columns(latest, now)["STATE"] if latest else ABSENT,
        "AGE": span(now - latest.created_at) if latest else ABSENT,
        "METRICS": one_line(metrics) or ABSENT,
        "CHAMPION": _champion_text(champion) if champion else ABSENT,
    }


def _champion_text(champion: Champion) -> str:
    """`RUN with accuracy 0.93, version 2`."""
    current = champion.current
    if current is None:
        return ABSENT
    return ", ".join(
        filter(None, (f"{current.run_id} with {one_line(value_text(current))}", version_text(champion)))
    )


SERVES_WITHIN_S = 7200
"""How long --wait waits; a deployment takes 10 to 40 minutes."""


@models.command(short_help="Serve a version of MODEL, or show what that costs.")
@click.argument("model")
@click.option("--version", type=click.IntRange(min=1), help="default: the one with the alias champion")
@click.option("--endpoint", metavar="ID", help="default: the model's, which is made if it does not exist")
@click.option("--machine-type", "machine", metavar="TYPE", help="default: n1-standard-2, or by --accelerator")
@click.option("--accelerator", "gpu", metavar="TYPE[:N]", help="GPUs of each replica, for example L4:1")
@click.option("--min", "least", type=click.IntRange(1, 1000), help="fewest replicas; default: 1")
@click.option("--max", "most", type=click.IntRange(1, 1000), help="most replicas; default: --min")
@click.option("--traffic", "share", type=click.IntRange(1, 100), help="in percent; default: 100")
@click.option(
    "--back", "instead", flag_value="--back", help="instead: all traffic to the model before this one"
)
@click.option(
    "--undeploy", "instead", flag_value="--undeploy", help="instead: remove the models without traffic"
)
@click.option("--undeploy-all", "instead", flag_value="--undeploy-all", help="instead: remove every model")
@click.option("--yes", is_flag=True, help="do it; else it is only shown, or asked for on a terminal")
@click.option("--wait", is_flag=True, help="wait until it serves, in the cloud 10 to 40 minutes")
@output_option(TABLE, JSON, YAML)
@takes_team
@takes_context_to_change
def deploy(clients: Clients, *, model: str, output: str, instead: str | None, **wish: Any) -> int:
    """Show what is deployed on an endpoint, what would change, and what all of it costs a month; with --yes, change it.

    The model that served before stays deployed without traffic, and costs the same, until --undeploy. None of it
    counts towards the policy's caps. It is done with your own credentials, which need the role roles/aiplatform.user.

    Exit status: 0 done or only shown, 2 refused, 3 no such model or endpoint.
    """
    from trainmaster.client.rules.serving import ServingEndpoint

    endpoint_id, yes, waits = (wish.pop(key) for key in ("endpoint", "yes", "wait"))
    if instead is not None and (given := [name for name, value in wish.items() if value is not None]):
        options = {each.name: each.opts[0] for each in click.get_current_context().command.params}
        names = ", ".join(str(options[name]) for name in given)
        raise click.UsageError(f"{names}: leave this out with {instead}, which deploys nothing.")
    endpoint = ServingEndpoint(clients, model, endpoint_id)
    if endpoint.last_failure:
        talk(f"The last deployment on {endpoint.id} failed: {endpoint.last_failure}")
    if instead is None:
        endpoint.plan_deployment(**wish)
    elif instead == "--back":
        endpoint.plan_return()
    else:
        endpoint.plan_removal(every=instead == "--undeploy-all")
    if not _is_confirmed(clients, endpoint, output, yes=yes):
        return ExitStatus.DONE
    if (operation := endpoint.apply()) is None:
        talk("Done.")
    elif waits:
        operation.result(timeout=SERVES_WITHIN_S)
        talk("It serves.")
    else:
        talk(f"Begun: {operation.operation.name}. Repeat this command to see how far it is.")
    return ExitStatus.DONE


def _is_confirmed(clients: Clients, endpoint: "ServingEndpoint", output: str, *, yes: bool) -> bool:
    """Print the plan; whether it changes anything, and may."""
    plan = endpoint.document
    document: Any = encoded(plan)
    if not print_for_programs(output, lambda: document):
        print_table([_served_row(row, plan["currency"]) for row in plan["models"]])
        cost = _a_month(plan["per_month"], plan["currency"])
        if any(row["traffic_after"] is not None for row in plan["models"]):
            talk(f"Endpoint {endpoint.id} then costs around the clock ({cost}), outside the policy's caps.")
    if not plan["changes"]:
        talk("There is nothing to change.")
        return False
    if not yes and output == TABLE and sys.stdin.isatty():
        yes = click.confirm(f"Change it in {clients.context.title}?", err=True)
    talk(f"Changing endpoint {endpoint.id}." if yes else "Nothing was changed. To change it, add --yes.")
    return yes


def _served_row(row: Mapping[str, Any], currency: str) -> dict[str, str]:
    texts = {key.upper(): one_line(row[key]) for key in ("id", "version", "machine", "replicas")}
    is_gone = row["traffic_after"] is None
    return {
        **texts,
        "TRAFFIC": f"{row['traffic']} %",
        "THEN": "undeployed" if is_gone else f"{row['traffic_after']} %",
        "COST": ABSENT if is_gone else _a_month(row["per_month"], currency),
    }


def _a_month(cost: Decimal | None, currency: str) -> str:
    return "price unknown" if cost is None else f"{money(cost, currency)} a month"


@click.group()
def champions() -> None:
    """List the best model of each name, show one, approve a challenger, or restore an earlier one."""


@champions.command()
@output_option()
@takes_context
def ls(clients: Clients, output: str) -> int:
    """List the champion of each model.

    Exit status: 0 done, 1 a champion cannot be read, or there are more than 1,000; the others are listed.
    """
    from trainmaster.client.rules.champions import champion_names, list_champions

    if output == NAME:
        names, problems = champion_names(clients)
        print_names(names)
    else:
        found, problems = list_champions(clients)
        if not print_for_programs(output, lambda: [each.document for each in found]):
            print_table([_row(each.champion) for each in found], spare=("SINCE", "METRIC"))
            for line in (line for each in found for line in pending_lines(each.champion)):
                talk(line)
            if not found and not problems:
                where = clients.context.title
                talk(f"No champions in {where}. A request with `champion` makes its runs compete.")
    for problem in problems:
        talk(problem)
    return ExitStatus.FINDING if problems else ExitStatus.DONE


def _row(champion: Champion) -> dict[str, str]:
    current = champion.current
    return {
        "MODEL": one_line(in_team(champion.team, champion.model_name)),
        "RUN": current.run_id if current else ABSENT,
        "METRIC": one_line(value_text(current)) if current else ABSENT,
        "SINCE": minute(current.since) if current else ABSENT,
    }


@champions.command(short_help="Show the champion of MODEL, and its comparisons.")
@click.argument("model")
@output_option()
@takes_team
@takes_context
def show(clients: Clients, model: str, output: str) -> int:
    """Show the champion of MODEL, where it comes from, its predecessors, and the latest challengers."""
    from trainmaster.client.rules.champions import find_champion, run_in_progress

    found = find_champion(clients, model)
    current = found.champion.current
    if not print_for_programs(output, lambda: found.document, [current.run_id] if current else []):
        _print_champion(found.champion)
        if (run_id := run_in_progress(clients, found.champion)) is not None:
            talk(
                f"{run_id} has succeeded, and its model is still being registered: trainmaster status {run_id}"
            )
    return ExitStatus.DONE


@champions.command()
@click.argument("model")
@click.option("--to-run", metavar="RUN", help="the champion to restore; default: the one before the current")
@wait_option(120.0, "how long to wait for the service's answer")
@takes_team
@takes_context_to_change
def rollback(clients: Clients, model: str, to_run: str | None, wait_s: float) -> int:
    """Restore an earlier champion of MODEL, and print its run's id.

    Exit status: 0 restored, 2 refused (no earlier champion, or its copy is gone), 3 the model has no
    champion, 5 no answer from the service in time.
    """
    from trainmaster.client.rules.champions import roll_back

    says_where(clients, f"Rolling back the champion of {model}")
    with order_survives_interrupt(f"trainmaster champions show {model}"):
        return _print_current(roll_back(clients, model, to_run, timeout_s=wait_s).champion.current)


def _print_current(current: Reign | None) -> int:
    if current is not None:
        talk(f"The champion is {current.model_uri}")
        print_names([current.run_id])
    return ExitStatus.DONE


@champions.command(short_help="Promote the challenger of MODEL, or reject it.")
@click.argument("model")
@click.argument("run", required=False)
@click.option("--reject", is_flag=True, help="reject it: the champion stays")
@wait_option(120.0, "how long to wait for the service's answer")
@takes_team
@takes_context_to_change
def approve(clients: Clients, model: str, run: str | None, reject: bool, wait_s: float) -> int:
    """Promote the challenger of MODEL that waits for approval, and print the champion's run.

    With RUN, only if it is that run's.

    Exit status: 0 decided, 2 refused (none waits, or it is not better any more), 3 the model has no champion, 5 no
    answer from the service in time.
    """
    from trainmaster.client.rules.champions import approve as give_approval

    says_where(clients, f"{'Rejecting' if reject else 'Approving'} the challenger of {model}")
    with order_survives_interrupt(f"trainmaster champions show {model}"):
        found = give_approval(clients, model, run, reject=reject, timeout_s=wait_s)
    return _print_current(found.champion.current)


def _print_champion(champion: Champion) -> None:
    print_facts(_facts(champion))
    click.echo("\nChampions, latest first")
    print_table([_reign(each) for each in islice(reversed(champion.history), LATEST)])
    click.echo("\nComparisons, latest first")
    verdicts = [_verdict(each) for each in islice(reversed(champion.considered), LATEST)]
    print_table(verdicts, spare=("AT", "OUTCOME", "REASON"))


def _reign(reign: Reign) -> dict[str, str]:
    return {
        "SINCE": minute(reign.since),
        "BY": reign.cause,
        "VALUE": f"{reign.value:g}",
        "RUN": one_line(reign.run_id),
    }


def _verdict(verdict: Verdict) -> dict[str, str]:
    return {
        "AT": minute(verdict.at),
        "RUN": one_line(verdict.run_id),
        "OUTCOME": "promoted" if verdict.promoted else "not promoted",
        "REASON": one_line(verdict.reason),
    }


def _facts(champion: Champion) -> Iterator[Fact]:
    yield "name", [in_team(champion.team, champion.model_name)]
    if lines := pending_lines(champion):
        yield "waits for approval", lines
    current = champion.current
    if current is None:
        yield "champion", ["none yet" if lines else "none: no challenger could be compared yet"]
        return
    yield "metric", [f"{value_text(current)} ({current.contest.goal})"]
    yield "since", [f"{minute(current.since)} UTC, by {current.cause}"]
    yield from registry_facts(champion)
    yield from lineage_facts(current)
