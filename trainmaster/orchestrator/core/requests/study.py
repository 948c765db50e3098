"""The `tuning` of a sound request as the REST API's StudySpec; 64-bit integers travel as strings.

Source: https://cloud.google.com/vertex-ai/docs/reference/rest/v1/StudySpec
"""

from collections.abc import Mapping
from typing import Any

from trainmaster.orchestrator.core.requests.spec import same_value, under_names

ALGORITHMS: Mapping[str, str] = {
    "bayesian": "ALGORITHM_UNSPECIFIED",
    "grid": "GRID_SEARCH",
    "random": "RANDOM_SEARCH",
}
MEASUREMENTS: Mapping[str, str] = {"best": "BEST_MEASUREMENT", "last": "LAST_MEASUREMENT"}
NOISES: Mapping[str, str] = {"low": "LOW", "high": "HIGH"}
SCALES: Mapping[str, str] = {
    "linear": "UNIT_LINEAR_SCALE",
    "log": "UNIT_LOG_SCALE",
    "reverse_log": "UNIT_REVERSE_LOG_SCALE",
}
SAFETY: Mapping[str, str] = {
    "threshold": "safetyThreshold",
    "min_safe_fraction": "desiredMinSafeTrialsFraction",
}
VALUES: Mapping[str, str] = {
    "min": "minValue",
    "max": "maxValue",
    "values": "values",
    "default": "defaultValue",
}
PARENTS: Mapping[str, str] = {
    "discrete": "parentDiscreteValues",
    "integer": "parentIntValues",
    "categorical": "parentCategoricalValues",
}
STOPPING_KEYS: Mapping[str, str] = {
    "median": "medianAutomatedStoppingSpec",
    "decay_curve": "decayCurveStoppingSpec",
    "convex": "convexAutomatedStoppingSpec",
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
# Any: the schema and the checks validate the types.
Document = Mapping[str, Any]


def study_spec(tuning: Document) -> dict[str, object]:
    """The `studySpec` of the job, of a tuning that the schema accepts and `tuning_faults` finds nothing wrong with."""
    spec: dict[str, object] = {
        "metrics": [_metric(metric) for metric in tuning["metrics"]],
        "parameters": [_parameter(name, each) for name, each in tuning["parameters"].items()],
        "algorithm": ALGORITHMS[tuning.get("algorithm", "bayesian")],
        "measurementSelectionType": MEASUREMENTS[tuning.get("measurement", "last")],
    }
    if "observation_noise" in tuning:
        spec["observationNoise"] = NOISES[tuning["observation_noise"]]
    if "early_stopping" in tuning:
        stopping = tuning["early_stopping"]
        spec[STOPPING_KEYS[stopping["rule"]]] = under_names(stopping, STOPPING_SETTINGS, _int64_setting)
    if tuning.get("stop_study"):
        spec["studyStoppingConfig"] = _stop_study(tuning["stop_study"])
    return spec


def _metric(metric: Document) -> dict[str, object]:
    fields: dict[str, object] = {"metricId": metric["id"], "goal": metric["goal"].upper()}
    if "safety" in metric:
        fields["safetyConfig"] = under_names(metric["safety"], SAFETY)
    return fields


def _parameter(name: str, parameter: Document) -> dict[str, object]:
    kind = parameter["type"]
    write = _int64 if kind == "integer" else same_value
    fields: dict[str, object] = {
        "parameterId": name,
        f"{kind}ValueSpec": under_names(parameter, VALUES, write),
    }
    if "scale" in parameter:
        fields["scaleType"] = SCALES[parameter["scale"]]
    if "conditional" in parameter:
        fields["conditionalParameterSpecs"] = [
            {PARENTS[kind]: {"values": list(map(write, each["when"]))}, "parameterSpec": _parameter(*child)}
            for each in parameter["conditional"]
            for child in each["parameters"].items()
        ]
    return fields


def _int64(value: object) -> object:
    return str(int(value)) if isinstance(value, float) else str(value)


def _int64_setting(value: object) -> object:
    """A setting of early stopping: its numbers are all 64-bit integers."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _stop_study(settings: Document) -> dict[str, object]:
    fields: dict[str, object] = {}
    for name, value in settings.items():
        written = f"{value}s" if name.endswith("_s") or "_seconds_" in name else value
        if name in STOP_STUDY_TIMES:
            constraint, kind = STOP_STUDY_TIMES[name]
            fields[constraint] = {kind: written}
        else:
            fields[STOP_STUDY[name]] = written
    return fields
