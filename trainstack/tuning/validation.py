"""The faults for which the service refuses a HyperparameterTuningJob, and the fields without effect here.

Source: comments of google.cloud.aiplatform.v1.HyperparameterTuningJob and StudySpec,
https://cloud.google.com/vertex-ai/docs/training/using-hyperparameter-tuning, read 2026-11. The sentences are
the project's: the service's are not published.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from trainstack.jobs.resource.machines import Message
from trainstack.jobs.resource.validation import Surroundings, common_faults

MAX_TRIALS, MAX_DISCRETE, MIN_GAP = 1000, 1000, 1e-10
_LOG_SCALES, _KNOWN_SCALES = (2, 3), (0, 1, 2, 3)
_GRID, _ALGORITHMS = 2, (0, 2, 3)


def faults_of(job: Message, here: Surroundings) -> list[str]:
    """One sentence for each fault, with its path; none for an acceptable job."""
    return [*common_faults(job, "trial_job_spec", here), *_count_faults(job), *_study_faults(job.study_spec)]


def _count_faults(job: Message) -> Iterator[str]:
    most, together, failed = job.max_trial_count, job.parallel_trial_count, job.max_failed_trial_count
    if not 1 <= most <= MAX_TRIALS:
        yield f"max_trial_count: expected 1 to {MAX_TRIALS}, found {most}."
    if together < 1:
        yield f"parallel_trial_count: at least 1, found {together}."
    elif together > most:
        yield f"parallel_trial_count: at most max_trial_count ({most}), found {together}."
    if not 0 <= failed <= max(most, 0):
        yield f"max_failed_trial_count: expected 0 to max_trial_count ({most}), found {failed}; 0 lets the service decide."


def _study_faults(study: Message) -> Iterator[str]:
    path = "study_spec"
    yield from _metric_faults(study, path)
    for field, known in (("observation_noise", (0, 1, 2)), ("measurement_selection_type", (0, 1, 2))):
        if getattr(study, field) not in known:
            yield f"{path}.{field}: unknown enum value {getattr(study, field)}."
    if study.algorithm not in _ALGORITHMS:
        yield f"{path}.algorithm: unknown enum value {study.algorithm}; expected unspecified, GRID_SEARCH or RANDOM_SEARCH."
    if not study.parameters:
        yield f"{path}.parameters: at least one parameter is required."
    yield from _siblings_faults(list(study.parameters), f"{path}.parameters", algorithm=study.algorithm)
    homes = Counter(parameter_id for _home, parameter_id in set(_homes(list(study.parameters), "")))
    for parameter_id in (name for name, count in homes.items() if count > 1 and name):
        yield f"{path}.parameters: {parameter_id!r} has several parents; give each occurrence a different name."


def _metric_faults(study: Message, path: str) -> Iterator[str]:
    if not study.metrics:
        yield f"{path}.metrics: at least one metric is required."
    for number, metric in enumerate(study.metrics):
        if not metric.metric_id:
            yield f"{path}.metrics[{number}].metric_id: required; the tag under which the trainer reports."
        if any(character.isspace() for character in metric.metric_id):
            yield f"{path}.metrics[{number}].metric_id: must not have white space, found {metric.metric_id!r}."
        fraction = metric.safety_config.desired_min_safe_trials_fraction
        if not 0 <= fraction <= 1:
            yield f"{path}.metrics[{number}].safety_config.desired_min_safe_trials_fraction: expected 0 to 1, found {fraction!r}."
        if metric.goal not in {0, 1, 2}:
            yield f"{path}.metrics[{number}].goal: unknown enum value {metric.goal}; expected MAXIMIZE or MINIMIZE."
    for metric_id in _repeated_values([metric.metric_id for metric in study.metrics]):
        yield f"{path}.metrics: duplicate metric {metric_id!r}."
    if study.metrics and all(metric.HasField("safety_config") for metric in study.metrics):
        yield f"{path}.metrics: a metric without safety_config is required, to optimize for."


def _homes(specs: Sequence[Message], home: str) -> Iterator[tuple[str, str]]:
    for index, spec in enumerate(specs):
        yield home, spec.parameter_id
        children = [child.parameter_spec for child in spec.conditional_parameter_specs]
        yield from _homes(children, f"{home}.{index}")


def _siblings_faults(specs: Sequence[Message], path: str, *, algorithm: int) -> Iterator[str]:
    for parameter_id in _repeated_values([spec.parameter_id for spec in specs]):
        yield f"{path}: duplicate parameter {parameter_id!r}; specify each parameter once."
    for index, spec in enumerate(specs):
        yield from _parameter_faults(spec, f"{path}[{index}]", algorithm=algorithm)


def _parameter_faults(spec: Message, path: str, *, algorithm: int) -> Iterator[str]:
    if not spec.parameter_id:
        yield f"{path}.parameter_id: required; it becomes the trainer's flag."
    kind = spec.WhichOneof("parameter_value_spec")
    match kind:
        case "double_value_spec" | "integer_value_spec":
            yield from _range_faults(getattr(spec, kind), f"{path}.{kind}", scale=spec.scale_type)
        case "categorical_value_spec" | "discrete_value_spec":
            yield from _values_faults(list(getattr(spec, kind).values), f"{path}.{kind}.values")
        case _:
            yield f"{path}: one of double, integer, categorical and discrete value_spec is required."
    if kind == "discrete_value_spec":
        yield from _discrete_faults(list(spec.discrete_value_spec.values), path, scale=spec.scale_type)
    if kind == "categorical_value_spec" and spec.scale_type:
        yield f"{path}.scale_type: a categorical parameter has no scale; leave it out."
    if kind == "double_value_spec" and algorithm == _GRID:
        yield f"{path}: GRID_SEARCH does not support a double parameter; list its values as a discrete one."
    if spec.scale_type not in _KNOWN_SCALES:
        yield f"{path}.scale_type: unknown enum value {spec.scale_type}."
    yield from _children_faults(spec, kind, path, algorithm=algorithm)


def _range_faults(bounds: Message, path: str, *, scale: int) -> Iterator[str]:
    low, high = bounds.min_value, bounds.max_value
    if not (math.isfinite(low) and math.isfinite(high)):
        yield f"{path}: expected finite bounds, found {low!r} and {high!r}."
    if low > high:
        yield f"{path}: min_value {low!r} is above max_value {high!r}; swap them."
    if scale in _LOG_SCALES and low <= 0:
        yield f"{path}.min_value: a logarithmic scale needs values above zero, found {low!r}."


def _values_faults(values: Sequence[object], path: str) -> Iterator[str]:
    if not values:
        yield f"{path}: at least one value is required."
    for value in _repeated_values(values):
        yield f"{path}: duplicate value {value!r}."


def _discrete_faults(values: Sequence[float], path: str, *, scale: int) -> Iterator[str]:
    values_path = f"{path}.discrete_value_spec.values"
    if len(values) > MAX_DISCRETE:
        yield f"{values_path}: at most {MAX_DISCRETE} values are allowed, found {len(values)}."
    if not all(math.isfinite(value) for value in values):
        yield f"{values_path}: expected finite numbers, found {values!r:.80}."
    if any(later - earlier < MIN_GAP for earlier, later in pairwise(values) if later != earlier):
        yield f"{values_path}: expected increasing values at least {MIN_GAP} apart, found {values!r:.80}."
    if scale in _LOG_SCALES and any(value <= 0 for value in values):
        yield f"{values_path}: a logarithmic scale needs values above zero, found {min(values)!r}."


_CONDITION_OF = {
    "discrete_value_spec": "parent_discrete_values",
    "integer_value_spec": "parent_int_values",
    "categorical_value_spec": "parent_categorical_values",
}


def _children_faults(spec: Message, kind: str | None, path: str, *, algorithm: int) -> Iterator[str]:
    taken: Counter[tuple[str, object]] = Counter()
    for number, child in enumerate(spec.conditional_parameter_specs):
        children_path = f"{path}.conditional_parameter_specs[{number}]"
        condition = child.WhichOneof("parent_value_condition")
        if condition is None or condition != _CONDITION_OF.get(kind or ""):
            yield f"{children_path}: expected {_CONDITION_OF.get(kind or '', 'a parent that is not double')} for its parent, found {condition!r}."
        else:
            values = list(getattr(child, condition).values)
            if not values:
                yield f"{children_path}.{condition}.values: at least one value is required."
            yield from _unknown_values(spec, str(kind), values, f"{children_path}.{condition}.values")
            taken.update((child.parameter_spec.parameter_id, value) for value in set(values))
        yield from _parameter_faults(
            child.parameter_spec, f"{children_path}.parameter_spec", algorithm=algorithm
        )
    for (parameter_id, value), count in taken.items():
        if count > 1:
            yield f"{path}.conditional_parameter_specs: duplicate {parameter_id!r} for the parent's {value!r}, found {count} times."


def _unknown_values(spec: Message, kind: str, values: Sequence[Any], path: str) -> Iterator[str]:
    parent = getattr(spec, kind)
    for value in values:
        if kind == "integer_value_spec":
            known = parent.min_value <= value <= parent.max_value
        else:
            known = value in parent.values
        if not known:
            yield f"{path}: {value!r} is not a value of the parent {spec.parameter_id!r}."


def _repeated_values(values: Sequence[Any]) -> list[Any]:
    return [value for value, count in Counter(values).items() if count > 1 and value != ""]


def warnings_of(study: Message) -> Iterator[str]:
    """One sentence for each field of the study that has an effect in the service but not here."""
    for field in ("decay_curve_stopping_spec", "convex_automated_stopping_spec", "study_stopping_config"):
        if study.HasField(field):
            yield f"study_spec.{field} has no effect in the local JobService."
    for index, metric in enumerate(study.metrics):
        if metric.HasField("safety_config"):
            yield (
                f"study_spec.metrics[{index}].safety_config: the local JobService does not support safe search; "
                f"{metric.metric_id!r} is recorded but not optimized."
            )
