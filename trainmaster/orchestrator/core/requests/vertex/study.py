"""A studySpec and its trial counts, as the API spells them, said in our own way."""

from collections.abc import Mapping
from typing import Any

from trainmaster.orchestrator.core.documents.faults import json_path, listed
from trainmaster.orchestrator.core.requests.study import (
    ALGORITHMS,
    MEASUREMENTS,
    SCALES,
    STOP_STUDY,
    STOP_STUDY_TIMES,
    STOPPING_KEYS,
    STOPPING_SETTINGS,
)
from trainmaster.orchestrator.core.requests.vertex.fields import Fields, Numbers, Path, Translation, number

_TYPES = {
    "doubleValueSpec": "double",
    "integerValueSpec": "integer",
    "categoricalValueSpec": "categorical",
    "discreteValueSpec": "discrete",
}
_PARENTS = ("parentDiscreteValues", "parentIntValues", "parentCategoricalValues")
_GOALS = {"MAXIMIZE": "maximize", "MINIMIZE": "minimize", "GOAL_TYPE_UNSPECIFIED": "maximize"}
_NOISES = {"LOW": "low", "HIGH": "high"}

# The numbers of the enums: google/cloud/aiplatform_v1/types/study.py, read 2026-11; a test holds them to it.
GOAL_NUMBERS: Numbers = {0: "GOAL_TYPE_UNSPECIFIED", 1: "MAXIMIZE", 2: "MINIMIZE"}
SCALE_NUMBERS: Numbers = {
    0: "SCALE_TYPE_UNSPECIFIED",
    1: "UNIT_LINEAR_SCALE",
    2: "UNIT_LOG_SCALE",
    3: "UNIT_REVERSE_LOG_SCALE",
}
ALGORITHM_NUMBERS: Numbers = {0: "ALGORITHM_UNSPECIFIED", 2: "GRID_SEARCH", 3: "RANDOM_SEARCH"}
MEASUREMENT_NUMBERS: Numbers = {
    0: "MEASUREMENT_SELECTION_TYPE_UNSPECIFIED",
    1: "LAST_MEASUREMENT",
    2: "BEST_MEASUREMENT",
}
NOISE_NUMBERS: Numbers = {0: "OBSERVATION_NOISE_UNSPECIFIED", 1: "LOW", 2: "HIGH"}


class StudyTranslation(Translation):
    """The part of a tuning job that a custom job has not."""

    def _tuning(self, job: Fields) -> dict[str, Any]:
        here: Path = ("tuning",)
        mine: dict[str, Any] = {}
        # gcloud's own defaults: one trial, one at once.
        trials = number(job.get("maxTrialCount"))
        self._put(mine, here, "max_trials", 1 if trials is None else trials, job.at("maxTrialCount"))
        parallel = number(job.get("parallelTrialCount"))
        self._put(mine, here, "parallel_trials", parallel, job.at("parallelTrialCount"))
        failed = number(job.get("maxFailedTrialCount"))
        self._put(mine, here, "max_failed_trials", failed, job.at("maxFailedTrialCount"))
        study = self._fields(job, "studySpec")
        self._put(mine, here, "metrics", self._metrics(study), study.at("metrics"))
        path = (*here, "parameters")
        parameters = self._parameters(self._list(study, "parameters"), study.at("parameters"), path)
        self._put(mine, here, "parameters", parameters, study.at("parameters"))
        for ours, theirs, words, numbers in (
            ("algorithm", "algorithm", _words(ALGORITHMS), ALGORITHM_NUMBERS),
            ("measurement", "measurementSelectionType", _words(MEASUREMENTS), MEASUREMENT_NUMBERS),
            ("observation_noise", "observationNoise", _NOISES, NOISE_NUMBERS),
        ):
            self._put(mine, here, ours, self._word(study, theirs, words, numbers), study.at(theirs))
        self._stopping(mine, study)
        self._stop_study(mine, study)
        self._faults += study.unknown()
        return mine

    def _metrics(self, study: Fields) -> list[dict[str, Any]]:
        metrics = []
        for index, value in enumerate(self._list(study, "metrics")):
            metric = Fields(value, (*study.at("metrics"), index))
            here: Path = ("tuning", "metrics", index)
            mine: dict[str, Any] = {}
            self._places[json_path(here)] = json_path(metric.path)
            self._put(mine, here, "id", metric.get("metricId"), metric.at("metricId"))
            # Unspecified means maximize, says the service.
            goal = self._word(metric, "goal", _GOALS, GOAL_NUMBERS) if metric.has("goal") else "maximize"
            self._put(mine, here, "goal", goal, metric.at("goal"))
            safety = self._fields(metric, "safetyConfig")
            if metric.has("safetyConfig"):
                mine["safety"] = {}
                inner = (*here, "safety")
                for ours, theirs in (
                    ("threshold", "safetyThreshold"),
                    ("min_safe_fraction", "desiredMinSafeTrialsFraction"),
                ):
                    self._put(mine["safety"], inner, ours, safety.get(theirs), safety.at(theirs))
                self._faults += safety.unknown()
            self._faults += metric.unknown()
            metrics.append(mine)
        return metrics

    def _parameters(self, values: list[object], source: Path, here: Path) -> dict[str, Any]:
        mine: dict[str, Any] = {}
        for index, value in enumerate(values):
            self._parameter(mine, here, Fields(value, (*source, index)))
        return mine

    def _parameter(self, mine: dict[str, Any], here: Path, spec: Fields) -> None:
        name = spec.get("parameterId")
        if not isinstance(name, str) or name in mine:
            problem = "the parameter stands here twice" if isinstance(name, str) else "a name is wanted here"
            self._refuse(spec.at("parameterId"), problem, name)
            return
        inner: Path = (*here, name)
        fields: dict[str, Any] = {}
        self._put(mine, here, name, fields, spec.path)
        kinds = [kind for kind in _TYPES if spec.has(kind)]
        if len(kinds) != 1:
            self._refuse(spec.path, f"exactly one of {listed(_TYPES)} is wanted here", kinds)
        self._places[json_path((*inner, "type"))] = json_path(spec.path)
        for kind in kinds[:1]:
            self._put(fields, inner, "type", _TYPES[kind], spec.at(kind))
            self._values(fields, inner, self._fields(spec, kind))
        scale = self._word(spec, "scaleType", _words(SCALES), SCALE_NUMBERS)
        self._put(fields, inner, "scale", scale, spec.at("scaleType"))
        conditions = self._list(spec, "conditionalParameterSpecs")
        if conditions:
            fields["conditional"] = [
                self._condition(
                    Fields(value, (*spec.at("conditionalParameterSpecs"), index)),
                    (*inner, "conditional", index),
                )
                for index, value in enumerate(conditions)
            ]
        self._faults += spec.unknown()

    def _values(self, fields: dict[str, Any], here: Path, ranged: Fields) -> None:
        names = ("min", "max") if fields["type"] in ("double", "integer") else ("values",)
        for ours in (*names, "default"):
            theirs = ours if ours == "values" else f"{ours}Value"
            found = ranged.get(theirs)
            if found is None and ours in ("min", "max"):
                # The API's JSON leaves zeros out, and reads what is left out as zero.
                self._warn(ranged.at(theirs), "left out, which is 0 to Vertex AI")
                found = 0
            value = number(found) if fields["type"] == "integer" else found
            self._put(fields, here, ours, value, ranged.at(theirs))
        self._faults += ranged.unknown()

    def _condition(self, condition: Fields, here: Path) -> dict[str, Any]:
        mine: dict[str, Any] = {"parameters": {}}
        for path in (here, (*here, "when")):
            self._places[json_path(path)] = json_path(condition.path)
        for key in _PARENTS:
            if condition.has(key):
                parent = self._fields(condition, key)
                values = parent.get("values")
                if key == "parentIntValues" and isinstance(values, list):
                    values = [number(value) for value in values]
                self._put(mine, here, "when", values, parent.at("values"))
        spec = self._fields(condition, "parameterSpec")
        self._parameter(mine["parameters"], (*here, "parameters"), spec)
        self._faults += condition.unknown()
        return mine

    def _stopping(self, mine: dict[str, Any], study: Fields) -> None:
        rules = [(rule, key) for rule, key in STOPPING_KEYS.items() if study.has(key)]
        for _, key in rules[1:]:
            self._refuse(study.at(key), "a study has one rule of early stopping", key)
        for rule, key in rules[:1]:
            written = self._fields(study, key)
            stopping: dict[str, Any] = {"rule": str(rule)}
            here: Path = ("tuning", "early_stopping")
            self._put(mine, ("tuning",), "early_stopping", stopping, written.path)
            for ours, theirs in STOPPING_SETTINGS.items():
                if written.has(theirs):
                    self._put(stopping, here, ours, number(written.get(theirs)), written.at(theirs))
            self._faults += written.unknown()

    def _stop_study(self, mine: dict[str, Any], study: Fields) -> None:
        written = self._fields(study, "studyStoppingConfig")
        if not study.has("studyStoppingConfig"):
            return
        here: Path = ("tuning", "stop_study")
        stop: dict[str, Any] = {}
        self._put(mine, ("tuning",), "stop_study", stop, written.path)
        for ours, theirs in STOP_STUDY.items():
            lasts = theirs.startswith("maxDuration")
            value = self._duration(written, theirs) if lasts else number(written.get(theirs))
            self._put(stop, here, ours, value, written.at(theirs))
        constraints = {key: self._fields(written, key) for key, _ in STOP_STUDY_TIMES.values()}
        for ours, (constraint, kind) in STOP_STUDY_TIMES.items():
            fields = constraints[constraint]
            value = self._duration(fields, kind) if kind == "maxDuration" else fields.get(kind)
            self._put(stop, here, ours, value, fields.at(kind))
        for fields in (written, *constraints.values()):
            self._faults += fields.unknown()


def _words(names: Mapping[Any, str]) -> dict[str, str]:
    """Our word for each of the API's."""
    return {written: str(ours) for ours, written in names.items()}
