"""`trainmaster plan`: what would happen to a request, and why. Submits nothing."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainmaster.cli.exits import Exit, Stop
from trainmaster.cli.plan.screen import print_plan
from trainmaster.cli.verb import (
    JSON,
    TABLE,
    YAML,
    context_or_examples,
    output_option,
    print_data,
    takes_include,
    takes_team,
    talk,
)

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients
    from trainmaster.client.context import Context
    from trainmaster.client.plan.plan import Plan
    from trainmaster.orchestrator.core.admission.prices import Prices
    from trainmaster.orchestrator.core.documents.faults import Fault
    from trainmaster.orchestrator.core.requests.request import Request, RequestRules

SHIPPED = "the policy and prices that this version ships"


@click.command()
@click.argument("file")
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="replace a value of the request, as submit does; repeatable",
)
@click.option("--key", help="the idempotency key that it would be published with, instead of dropped")
@click.option("--policy", type=Path, metavar="FILE", help="plan offline, with this policy")
@click.option(
    "--context", metavar="NAME", help="local, local:DIR or PROJECT/REGION; default: the current one"
)
@takes_include
@takes_team
@output_option(TABLE, JSON, YAML)
def plan(
    *,
    file: str,
    overrides: tuple[str, ...],
    key: str | None,
    policy: Path | None,
    context: str | None,
    include: tuple[str, ...],
    output: str,
) -> int:
    """Show what would happen to the request in FILE, and why; - reads standard input. Submits nothing.

    Shows the request as the service reads it, the job and the cost of each candidate, recent refusals for the same quota,
    and whether the run would start at once or wait, and behind which runs. With --policy, or without a context and a
    running local stack, it contacts no service and lists what it could not check.

    Exit status: 0 the request would be accepted, 2 it would be refused, for its faults or because a cap is reached.
    """
    from trainmaster.client.clients import Clients
    from trainmaster.client.request_files import read_input

    where = context_or_examples(context)
    given = _Given(
        file=file, content=read_input(file, sys.stdin.buffer), settings=overrides, key=key, include=include
    )
    if policy is not None or not where.chosen_by:
        made = _offline(given, where, policy)
    else:
        with Clients(where) as clients:
            made = _online(given, clients)
    if output == TABLE:
        print_plan(made)
    else:
        print_data(made.document, output)
    if not where.chosen_by:
        talk(
            f"No context is chosen, and no local stack is running: "
            f"planned with the examples' names, project {where.project}, region {where.region}."
        )
    talk("\n".join(["Nothing was submitted. Not looked at:", *(f"  {each}" for each in made.not_checked)]))
    return Exit.USAGE if made.outlook is not None and made.outlook.verdict == "refused" else Exit.DONE


@dataclass(frozen=True, kw_only=True)
class _Given:
    """What the command line says about the request."""

    file: str
    content: bytes
    settings: tuple[str, ...]
    key: str | None
    include: tuple[str, ...]


def _offline(given: _Given, where: "Context", policy: Path | None) -> "Plan":
    from trainmaster.client.plan.making import offline_plan
    from trainmaster.client.request_files import SHIPPED_POLICY, read_policy, rules_for, shipped_prices

    rules, prices = rules_for(where, read_policy(policy or SHIPPED_POLICY, where)), shipped_prices()
    request, _ = _request(given, where, rules, prices)
    return offline_plan(request, where, str(policy) if policy else SHIPPED, prices)


def _online(given: _Given, clients: "Clients") -> "Plan":
    from trainmaster.client.deployment import prices_of, read_deployment, rules_of
    from trainmaster.client.plan.making import full_plan, offline_plan

    where, deployment = clients.context, read_deployment(clients)
    rules, prices = rules_of(deployment, where), prices_of(deployment)
    request, object_name = _request(given, where, rules, prices)
    made = offline_plan(request, where, f"as deployed, version {deployment.version}", prices)
    now = datetime.now(UTC)
    return full_plan(clients, made, request, rules.policy, object_name=object_name, key=given.key, now=now)


def _request(
    given: _Given, where: "Context", rules: "RequestRules", prices: "Prices"
) -> "tuple[Request, str]":
    """The request as `submit` would send it, and the object's name under which it would be dropped."""
    from trainmaster.client.submission.edits import Edits
    from trainmaster.client.submission.prepare import prepare
    from trainmaster.client.submission.settings import parse_settings

    edits = Edits(settings=parse_settings(given.settings), include=given.include)
    is_message = given.key is not None
    prepared = prepare(
        given.file, given.content, edits, context=where, rules=rules, prices=prices, is_message=is_message
    )
    if prepared.request is None:
        if prepared.not_python:
            talk(prepared.not_python)
        raise _refusal(prepared.faulty, prepared.faults)
    return prepared.request, prepared.object_name


def _refusal(file: str, faults: "Sequence[Fault]") -> Stop:
    from trainmaster.cli.faults import fault_lines

    talk("\n".join(fault_lines(faults, file)))
    return Stop(Exit.USAGE, "The service would refuse this request.")
