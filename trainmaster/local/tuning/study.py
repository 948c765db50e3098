"""What a StudySpec asks of a study as a whole: how trials are stopped, when it ends, what has no effect.

Source: comments of google.cloud.aiplatform.v1.StudySpec and its StudyStoppingConfig, read 2026-11.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from trainmaster.local.tuning.stopping import Rule, Stopping

# protobuf's generated messages have no types of their own.
Message = Any


_RULES = {
    "median_automated_stopping_spec": Rule.MEDIAN,
    "decay_curve_stopping_spec": Rule.DECAY_CURVE,
    "convex_automated_stopping_spec": Rule.CONVEX,
}


def stopping_of(study: Message) -> Stopping | None:
    """How trials are stopped early; None when they are not."""
    field = study.WhichOneof("automated_stopping_spec")
    if field not in _RULES:
        return None
    convex = study.convex_automated_stopping_spec  # empty for another rule
    return Stopping(
        rule=_RULES[field],
        by_time=getattr(study, field).use_elapsed_duration,
        last=convex.max_step_count,
        first=convex.min_step_count,
        measurements=convex.min_measurement_count,
    )


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Where a study stands.

    Attributes:
        suggested: trials so far, whatever became of them.
        results: end and value (more is better) of each SUCCEEDED trial in the order of their ends;
            empty values for a study with several objectives.
    """

    created: datetime
    suggested: int
    completed: int
    results: Sequence[tuple[datetime, float]]


def has_enough(config: Message, progress: Progress, *, now: datetime) -> bool:
    """Whether no more trials are to be suggested: the conditions in the order in which the service looks at them."""
    if not _passed(config, "minimum_runtime_constraint", progress, now=now, unset=True):
        return False
    if config.HasField("min_num_trials") and progress.completed < config.min_num_trials.value:
        return False
    if _passed(config, "maximum_runtime_constraint", progress, now=now, unset=False):
        return True
    if config.HasField("max_num_trials") and progress.suggested >= config.max_num_trials.value:
        return True
    return _stagnates(config, progress, now=now)


def _passed(config: Message, field: str, progress: Progress, *, now: datetime, unset: bool) -> bool:
    constraint = getattr(config, field)
    match constraint.WhichOneof("constraint"):
        case "max_duration":
            return bool(now - progress.created >= constraint.max_duration.ToTimedelta())
        case "end_time":
            return bool(now >= constraint.end_time.ToDatetime(tzinfo=UTC))
        case _:
            return unset


def _stagnates(config: Message, progress: Progress, *, now: datetime) -> bool:
    if not progress.results:
        return False
    best = max(value for _, value in progress.results)
    first = next(at for at, (_, value) in enumerate(progress.results) if value == best)
    if config.HasField("max_num_trials_no_progress"):
        since = len(progress.results) - 1 - first
        if since >= config.max_num_trials_no_progress.value:
            return True
    longest: timedelta = config.max_duration_no_progress.ToTimedelta()
    improved, _ = progress.results[first]
    return bool(config.HasField("max_duration_no_progress")) and now - improved >= longest


def unheeded(study: Message) -> list[str]:
    """One sentence for each thing that the study says and that has no effect."""
    found = list(_defaults(study.parameters, "study_spec.parameters"))
    if study.observation_noise:
        found.append(
            "study_spec.observation_noise is for Vertex AI Vizier alone and has no effect in a tuning job."
        )
    for at, metric in enumerate(study.metrics):
        if metric.HasField("safety_config"):
            found.append(
                f"study_spec.metrics[{at}].safety_config: the local JobService does not search safely; "
                f"{metric.metric_id!r} is recorded and not optimised."
            )
    convex = study.convex_automated_stopping_spec
    return found + [
        f"study_spec.convex_automated_stopping_spec.{field} has no effect in the local JobService."
        for field in ("learning_rate_parameter_name", "update_all_stopped_trials")
        if getattr(convex, field)
    ]


def _defaults(specs: Sequence[Message], path: str) -> Iterator[str]:
    for at, spec in enumerate(specs):
        kind = spec.WhichOneof("parameter_value_spec")
        if kind and getattr(spec, kind).HasField("default_value"):
            yield (
                f"{path}[{at}].{kind}.default_value is for Vertex AI Vizier alone and has no effect in a tuning job."
            )
        children = [child.parameter_spec for child in spec.conditional_parameter_specs]
        yield from _defaults(children, f"{path}[{at}].conditional_parameter_specs")
