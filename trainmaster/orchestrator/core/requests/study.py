"""A tuning as the REST API's StudySpec; 64-bit integers travel as strings.

Source: https://cloud.google.com/vertex-ai/docs/reference/rest/v1/StudySpec
"""

from collections.abc import Mapping
from typing import assert_never

from trainmaster.orchestrator.core.requests.tuning import (
    Algorithm,
    Condition,
    EarlyStopping,
    Measurement,
    Metric,
    Parameter,
    ParameterType,
    StoppingRule,
    Tuning,
)

ALGORITHMS: Mapping[Algorithm, str] = {
    Algorithm.BAYESIAN: "ALGORITHM_UNSPECIFIED",
    Algorithm.GRID: "GRID_SEARCH",
    Algorithm.RANDOM: "RANDOM_SEARCH",
}
MEASUREMENTS: Mapping[Measurement, str] = {
    Measurement.BEST: "BEST_MEASUREMENT",
    Measurement.LAST: "LAST_MEASUREMENT",
}
SCALES: Mapping[str, str] = {
    "linear": "UNIT_LINEAR_SCALE",
    "log": "UNIT_LOG_SCALE",
    "reverse_log": "UNIT_REVERSE_LOG_SCALE",
}
STOPPING_KEYS: Mapping[StoppingRule, str] = {
    StoppingRule.MEDIAN: "medianAutomatedStoppingSpec",
    StoppingRule.DECAY_CURVE: "decayCurveStoppingSpec",
    StoppingRule.CONVEX: "convexAutomatedStoppingSpec",
}
STOPPING_SETTINGS: Mapping[str, str] = {
    "use_elapsed_duration": "useElapsedDuration",
    "max_step_count": "maxStepCount",
    "min_step_count": "minStepCount",
    "min_measurement_count": "minMeasurementCount",
    "learning_rate_parameter": "learningRateParameterName",
    "update_all_stopped_trials": "updateAllStoppedTrials",
}
STOP_STUDY: Mapping[str, str] = {
    "as_soon_as_possible": "shouldStopAsap",
    "min_trials": "minNumTrials",
    "max_trials": "maxNumTrials",
    "max_trials_without_progress": "maxNumTrialsNoProgress",
    "max_seconds_without_progress": "maxDurationNoProgress",
}
STOP_STUDY_TIMES: Mapping[str, tuple[str, str]] = {
    "min_runtime_s": ("minimumRuntimeConstraint", "maxDuration"),
    "min_end_time": ("minimumRuntimeConstraint", "endTime"),
    "max_runtime_s": ("maximumRuntimeConstraint", "maxDuration"),
    "max_end_time": ("maximumRuntimeConstraint", "endTime"),
}


def study_spec(tuning: Tuning) -> dict[str, object]:
    """The `studySpec` of the job."""
    spec: dict[str, object] = {
        "metrics": [_metric(metric) for metric in tuning.metrics],
        "parameters": [_parameter(parameter) for parameter in tuning.parameters],
        "algorithm": ALGORITHMS[tuning.algorithm],
        "measurementSelectionType": MEASUREMENTS[tuning.measurement],
    }
    if tuning.observation_noise:
        spec["observationNoise"] = tuning.observation_noise.upper()
    if tuning.early_stopping:
        spec[STOPPING_KEYS[tuning.early_stopping.rule]] = _stopping(tuning.early_stopping)
    if tuning.stop_study:
        spec["studyStoppingConfig"] = _stop_study(tuning.stop_study)
    return spec


def _metric(metric: Metric) -> dict[str, object]:
    fields: dict[str, object] = {"metricId": metric.id, "goal": metric.goal.value.upper()}
    if metric.safety:
        safety: dict[str, object] = {"safetyThreshold": metric.safety.threshold}
        if metric.safety.min_safe_fraction is not None:
            safety["desiredMinSafeTrialsFraction"] = metric.safety.min_safe_fraction
        fields["safetyConfig"] = safety
    return fields


def _parameter(parameter: Parameter) -> dict[str, object]:
    fields: dict[str, object] = {"parameterId": parameter.name, **_values(parameter)}
    if parameter.scale:
        fields["scaleType"] = SCALES[parameter.scale]
    if parameter.conditional:
        fields["conditionalParameterSpecs"] = [
            {_parent_key(parameter.type): {"values": _written(parameter.type, each)}, "parameterSpec": child}
            for each in parameter.conditional
            for child in map(_parameter, each.parameters)
        ]
    return fields


def _values(parameter: Parameter) -> dict[str, object]:
    default = {} if parameter.default is None else {"defaultValue": parameter.default}
    match parameter.type:
        case ParameterType.DOUBLE:
            spec = {"minValue": parameter.min, "maxValue": parameter.max, **default}
            return {"doubleValueSpec": spec}
        case ParameterType.INTEGER:
            whole = {"minValue": parameter.min, "maxValue": parameter.max, **default}
            return {"integerValueSpec": {name: _int64(value) for name, value in whole.items()}}
        case ParameterType.CATEGORICAL:
            return {"categoricalValueSpec": {"values": list(parameter.values), **default}}
        case ParameterType.DISCRETE:
            return {"discreteValueSpec": {"values": list(parameter.values), **default}}
        case _:
            assert_never(parameter.type)


def _parent_key(kind: ParameterType) -> str:
    match kind:
        case ParameterType.INTEGER:
            return "parentIntValues"
        case ParameterType.CATEGORICAL:
            return "parentCategoricalValues"
        case ParameterType.DISCRETE:
            return "parentDiscreteValues"
        case ParameterType.DOUBLE:
            raise ValueError("a double parameter has no conditions; the checks refuse them")
        case _:
            assert_never(kind)


def _written(kind: ParameterType, condition: Condition) -> list[object]:
    return [_int64(value) if kind is ParameterType.INTEGER else value for value in condition.when]


def _int64(value: object) -> str:
    return str(int(value)) if isinstance(value, float) else str(value)


def _stopping(stopping: EarlyStopping) -> dict[str, object]:
    int64 = ("max_step_count", "min_step_count", "min_measurement_count")
    return {
        STOPPING_SETTINGS[name]: _int64(value) if name in int64 else value
        for name, value in stopping.settings.items()
    }


def _stop_study(settings: Mapping[str, object]) -> dict[str, object]:
    fields: dict[str, object] = {}
    for name, value in settings.items():
        if name in STOP_STUDY_TIMES:
            constraint, kind = STOP_STUDY_TIMES[name]
            fields[constraint] = {kind: f"{value}s" if kind == "maxDuration" else value}
        else:
            seconds = name == "max_seconds_without_progress"
            fields[STOP_STUDY[name]] = f"{value}s" if seconds else value
    return fields
