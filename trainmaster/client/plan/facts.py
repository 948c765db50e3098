"""A plan in words, as the command and the console show it."""

from collections.abc import Iterator

from trainmaster.client.plan.outlook import Outlook
from trainmaster.client.plan.plan import Plan, SeenEvent
from trainmaster.orchestrator.core.policy.currency import shown_bound, shown_money
from trainmaster.orchestrator.core.runs.record import Estimate

BEHIND_SHOWN = 5
PAID = "saves the wait for new machines and their cost: these are billed with or without it (trainmaster pools ls)"


def plan_facts(plan: Plan) -> Iterator[tuple[str, list[str]]]:
    """What would happen first and why, and each job with its cost: labels with lines."""
    yield "model", [str(plan.request.get("model_name"))]
    yield "where", [f"project {plan.project}, region {plan.region}", f"policy: {plan.policy}"]
    if plan.outlook is not None:
        yield "would", [*_outlook_lines(plan.outlook, plan.jobs[plan.outlook.candidate].label)]
    for seen in plan.seen:
        yield "seen before", [*_seen_lines(seen)]
    for job in plan.jobs:
        cost = PAID if job.label == "pool" else f"cost {_cost_text(job.estimate)}"
        lines = [f"{job.kind} in {job.region} on {job.machines}", cost]
        if plan.runs is not None and job.estimate.at_most is not None and job.label != "pool":
            total = shown_bound(job.estimate.at_most * plan.runs, job.estimate.currency)
            lines.append(f"all {plan.runs} runs of the matrix: at most {total}")
        yield job.label, lines
    for limit in plan.limits or ():
        yield "limit", [f"{len(limit.holders)} of {limit.jobs} jobs {limit.text}"]
    for warning in plan.warnings:
        yield "warning", [warning]


def named_runs(plan: Plan) -> list[str]:
    """The runs that the facts name: those that go first, and the one that the same file or key started."""
    behind = () if plan.outlook is None else plan.outlook.behind[:BEHIND_SHOWN]
    return list(dict.fromkeys([*behind, *(seen.run_id for seen in plan.seen if seen.run_id)]))


def _outlook_lines(outlook: Outlook, label: str) -> Iterator[str]:
    how = {"job": "the request itself", "pool": "a pool that has free machines"}.get(label, label)
    match outlook.verdict:
        case "starts":
            yield f"start at once, with {how}, if Vertex AI has room"
        case "waits":
            yield f"wait with {how}: {outlook.reason}"
        case _:
            yield f"be refused: {outlook.reason}"
    for run_id in outlook.behind[:BEHIND_SHOWN]:
        yield f"  behind {run_id}"
    if len(outlook.behind) > BEHIND_SHOWN:
        yield f"  and {len(outlook.behind) - BEHIND_SHOWN} more"


def _seen_lines(seen: SeenEvent) -> Iterator[str]:
    yield f"{seen.name}: {seen.state}{f', run {seen.run_id}' if seen.run_id else ''}"
    if seen.same_request:
        yield "with the same request"
    yield (
        "dropping the file again starts another run"
        if seen.starts_again
        else "publishing with this key again starts nothing"
    )


def _cost_text(estimate: Estimate) -> str:
    if estimate.at_most is None or estimate.per_hour is None:
        return f"unknown: no price for {', '.join(estimate.unknown)}"
    per_hour = shown_money(estimate.per_hour, estimate.currency)
    at_most = shown_bound(estimate.at_most, estimate.currency)
    return f"about {per_hour} an hour, at most {at_most}; prices of {estimate.as_of}"
