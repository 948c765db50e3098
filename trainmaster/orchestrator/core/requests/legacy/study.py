"""The `hyperparameters` of a legacy job as our own tuning."""

from typing import Any

from trainmaster.orchestrator.core.documents.faults import json_path
from trainmaster.orchestrator.core.requests.legacy.reading import Reading
from trainmaster.orchestrator.core.requests.vertex.fields import Fields, Path, number

DEFAULT_TAG = "training/hptuning/metric"
_GOALS = {"MAXIMIZE": "maximize", "MINIMIZE": "minimize", "GOAL_TYPE_UNSPECIFIED": "maximize"}
_TYPES = {
    "DOUBLE": "double",
    "INTEGER": "integer",
    "CATEGORICAL": "categorical",
    "DISCRETE": "discrete",
}
_SCALES = {
    "UNIT_LINEAR_SCALE": "linear",
    "UNIT_LOG_SCALE": "log",
    "UNIT_REVERSE_LOG_SCALE": "reverse_log",
}
_ALGORITHMS = {"ALGORITHM_UNSPECIFIED": "bayesian", "GRID_SEARCH": "grid", "RANDOM_SEARCH": "random"}
_RANGE = {"minValue": "min", "maxValue": "max"}
_LISTS = {"CATEGORICAL": "categoricalValues", "DISCRETE": "discreteValues"}


class StudyReading(Reading):
    """The part of the translation that only a tuning has."""

    def _hyperparameters(self, mine: dict[str, Any], spec: Fields) -> None:
        written = self._fields(spec, "hyperparameters")
        if not spec.has("hyperparameters"):
            return
        here: Path = ("tuning",)
        tuning: dict[str, Any] = {}
        self._put(mine, (), "tuning", tuning, written.path)
        self._objective(tuning, written)
        for ours, theirs, default in (
            ("max_trials", "maxTrials", 1),
            ("parallel_trials", "maxParallelTrials", None),
            ("max_failed_trials", "maxFailedTrials", None),
        ):
            count = number(written.get(theirs))
            self._put(tuning, here, ours, default if count is None else count, written.at(theirs))
        parameters: dict[str, Any] = {}
        self._put(tuning, here, "parameters", parameters, written.at("params"))
        for index, value in enumerate(self._list(written, "params")):
            self._parameter(parameters, Fields(value, (*written.at("params"), index)))
        self._how(tuning, written)
        self._faults += written.unknown()

    def _objective(self, tuning: dict[str, Any], written: Fields) -> None:
        metric: dict[str, Any] = {}
        here: Path = ("tuning", "metrics", 0)
        tuning["metrics"] = [metric]
        self._places["$.tuning.metrics"] = json_path(written.path)
        self._places[json_path(here)] = json_path(written.path)
        tag = written.get("hyperparameterMetricTag")
        source = written.at("hyperparameterMetricTag")
        self._put(metric, here, "id", DEFAULT_TAG if tag is None else tag, source)
        goal = self._word(written, "goal", _GOALS) if written.get("goal") is not None else "maximize"
        # Where the word is none of these the fault is there already; the schema need not miss it too.
        self._put(metric, here, "goal", goal, written.at("goal"))

    def _how(self, tuning: dict[str, Any], written: Fields) -> None:
        here: Path = ("tuning",)
        if written.get("algorithm") == "POPULATION_BASED_TRAINING":
            self._wrong(
                written.at("algorithm"),
                "Vertex AI has no population based training",
                found="POPULATION_BASED_TRAINING",
                repair="write algorithm: ALGORITHM_UNSPECIFIED, the Bayesian search, which is the nearest",
            )
        else:
            algorithm = self._word(written, "algorithm", _ALGORITHMS)
            self._put(tuning, here, "algorithm", algorithm, written.at("algorithm"))
        if written.has("resumePreviousJobId"):
            self._wrong(
                written.at("resumePreviousJobId"),
                "a study of Vertex AI takes no earlier one's trials over",
                found=written.get("resumePreviousJobId"),
                repair="take it out and narrow the ranges of params to what the earlier trials found best",
            )
        stops, path = written.get("enableTrialEarlyStopping"), written.at("enableTrialEarlyStopping")
        if stops is True:
            self._put(tuning, here, "early_stopping", {"rule": "median"}, path)
            self._warn(path, "it becomes the median rule, Vertex AI's nearest to the old service's own")
        elif stops not in (None, False):
            self._wrong(path, "true or false is wanted here", found=stops)

    def _parameter(self, parameters: dict[str, Any], spec: Fields) -> None:
        name = spec.get("parameterName")
        if spec.kind_fault or not isinstance(name, str) or name in parameters:
            twice = isinstance(name, str) and name in parameters
            path = spec.path if spec.kind_fault else spec.at("parameterName")
            self._refuse(path, "the parameter stands here twice" if twice else "a name is wanted here", name)
            return
        here: Path = ("tuning", "parameters")
        fields: dict[str, Any] = {}
        self._put(parameters, here, name, fields, spec.path)
        inner: Path = (*here, name)
        kind = spec.get("type")
        self._put(fields, inner, "type", self._word(spec, "type", _TYPES), spec.at("type"))
        self._values(fields, inner, spec, kind)
        if spec.get("scaleType") not in (None, "NONE"):
            self._put(fields, inner, "scale", self._word(spec, "scaleType", _SCALES), spec.at("scaleType"))
        self._faults += spec.unknown()

    def _values(self, fields: dict[str, Any], inner: Path, spec: Fields, kind: object) -> None:
        for theirs, ours in _RANGE.items():
            if kind == "DISCRETE" and spec.get(theirs) is not None:
                self._warn(
                    spec.at(theirs), "a DISCRETE parameter has its discreteValues; this was never read"
                )
                continue
            value = number(spec.get(theirs)) if kind == "INTEGER" else spec.get(theirs)
            self._put(fields, inner, ours, value, spec.at(theirs))
        wanted = _LISTS.get(kind) if isinstance(kind, str) else None
        for key in _LISTS.values():
            if key == wanted or (wanted is None and spec.has(key)):
                self._put(fields, inner, "values", spec.get(key), spec.at(key))
            elif spec.get(key):
                self._wrong(
                    spec.at(key),
                    f"a {kind} parameter has no {key}",
                    found=spec.get(key),
                    repair=f"write the values in {wanted}, or change the type",
                )
