"""What `trainmaster plan` prints for people."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from trainmaster.cli.table import print_facts
from trainmaster.cli.yaml_text import yaml_text
from trainmaster.client.terminal import Fact
from trainmaster.orchestrator.core.policy.currency import shown_bound, shown_money
from trainmaster.orchestrator.core.requests.script import RUNNER

if TYPE_CHECKING:
    from trainmaster.client.plan.outlook import LimitNow, Outlook
    from trainmaster.client.plan.plan import Plan, PlannedJob, SeenEvent
    from trainmaster.orchestrator.core.runs.record import Estimate

BEHIND_SHOWN = 5
RUNNER_AT = 2
"""The place of RUNNER in a script's command: trainmaster/orchestrator/core/requests/script.py."""


def print_plan(plan: "Plan") -> None:
    """What would happen first, then the request and each job as YAML."""
    print_facts(plan_facts(plan))
    _print_yaml("The request, as the service reads it", plan.request)
    for job in plan.jobs:
        what = "The job" if job.number == 0 else f"Fallback {job.number}"
        _print_yaml(
            f"{what}, as Vertex AI gets it: POST {job.parent}/{job.kind}", with_short_commands(job.body)
        )


def with_short_commands(document: Any) -> Any:
    """The document with one line in place of the program that fetches and starts a packed script."""
    if isinstance(document, Mapping):
        return {key: with_short_commands(value) for key, value in document.items()}
    if not isinstance(document, list | tuple):
        return document
    if len(document) > RUNNER_AT + 2 and document[RUNNER_AT] == RUNNER:
        archive, file = document[RUNNER_AT + 1 : RUNNER_AT + 3]
        line = f"# runs {file} of {archive}; all of it: -o yaml"
        return [*document[:RUNNER_AT], line, *document[RUNNER_AT + 1 :]]
    return [with_short_commands(each) for each in document]


def _print_yaml(title: str, document: object) -> None:
    click.echo(f"\n{click.style(title, bold=True)}")
    click.echo(yaml_text(document), nl=False)


def plan_facts(plan: "Plan") -> Iterator[Fact]:
    """What would happen first and why, and each job with its cost."""
    yield "model", [str(plan.request.get("model_name"))]
    yield "where", [f"project {plan.project}, region {plan.region}", f"policy: {plan.policy}"]
    if plan.outlook is not None:
        yield "would", [*_outlook_lines(plan.outlook)]
    for seen in plan.seen:
        yield "seen before", [*_seen_lines(seen)]
    for job in plan.jobs:
        yield ("job" if job.number == 0 else f"fallback {job.number}"), [*_job_lines(job)]
    for limit in plan.limits or ():
        yield "limit", [_limit_text(limit)]
    for warning in plan.warnings:
        yield "warning", [warning]


def _outlook_lines(outlook: "Outlook") -> Iterator[str]:
    how = "the request itself" if outlook.candidate == 0 else f"fallback {outlook.candidate}"
    if outlook.verdict == "starts":
        yield f"start at once, with {how}, if Vertex AI has room"
        return
    yield (
        f"wait with {how}: {outlook.reason}"
        if outlook.verdict == "waits"
        else f"be refused: {outlook.reason}"
    )
    for run_id in outlook.behind[:BEHIND_SHOWN]:
        yield f"  behind {run_id}"
    if len(outlook.behind) > BEHIND_SHOWN:
        yield f"  and {len(outlook.behind) - BEHIND_SHOWN} more"


def _seen_lines(seen: "SeenEvent") -> Iterator[str]:
    yield f"{seen.name}: {seen.state}{f', run {seen.run_id}' if seen.run_id else ''}"
    if seen.same_request:
        yield "with the same request"
    yield (
        "dropping the file again starts another run"
        if seen.starts_again
        else "publishing with this key again starts nothing"
    )


def _job_lines(job: "PlannedJob") -> Iterator[str]:
    yield f"{job.kind} in {job.region} on {job.machines}"
    yield f"cost {_cost_text(job.estimate)}"
    for attempt in job.refusals:
        yield f"no room at {attempt.at:%Y-%m-%d %H:%M} UTC: {attempt.outcome}"


def _cost_text(estimate: "Estimate") -> str:
    if estimate.at_most is None or estimate.per_hour is None:
        return f"unknown: no price for {', '.join(estimate.unknown)}"
    per_hour = shown_money(estimate.per_hour, estimate.currency)
    at_most = shown_bound(estimate.at_most, estimate.currency)
    return f"about {per_hour} an hour, at most {at_most}; prices of {estimate.as_of}"


def _limit_text(limit: "LimitNow") -> str:
    return f"{len(limit.holders)} of {limit.jobs} jobs {limit.text}"
