"""Columns and lines of what the policy's retention removes."""

from collections import Counter
from collections.abc import Iterator

from trainmaster.client.clean_plan import CleanPlan, PlannedRun
from trainmaster.client.terminal import one_line, plural, size_text
from trainmaster.orchestrator.core.names import in_team
from trainmaster.orchestrator.core.policy.retention import Part


def model_columns(plan: CleanPlan) -> list[dict[str, str]]:
    """A row for each model name: how many of each part go, and what that frees."""
    by_model = dict[str, list[PlannedRun]]()
    for run in plan.removed_runs:
        by_model.setdefault(in_team(run.row.team, run.row.model_name or "-"), []).append(run)
    return [
        {
            "MODEL": one_line(name),
            **{part.upper(): str(sum(part in run.decision.gone for run in runs)) for part in Part},
            "OBJECTS": f"{sum(run.objects for run in runs):,}",
            "SIZE": size_text(sum(run.size_bytes for run in runs)),
        }
        for name, runs in sorted(by_model.items())
    ]


def stay_lines(plan: CleanPlan) -> Iterator[str]:
    """Why other parts stay that are as old: each reason with its number; and the records that cannot be read."""
    reasons = Counter((part, why) for run in plan.runs for part, why in run.decision.stays.items())
    for (part, why), count in sorted(reasons.items()):
        yield f"{plural(count, part.removesuffix('s'))} kept: {one_line(why)}"
    yield from (f"passed over: {one_line(reason)}" for reason in plan.unreadable)


def total_line(plan: CleanPlan) -> str:
    """How much goes in all."""
    size = size_text(sum(run.size_bytes for run in plan.removed_runs))
    objects = plural(sum(run.objects for run in plan.removed_runs), "object")
    return f"Of {plural(len(plan.removed_runs), 'run')}: {objects} of the models bucket, {size}."
