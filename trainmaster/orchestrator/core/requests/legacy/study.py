"""The `hyperparameters` of a legacy job as our own tuning."""

from trainmaster.orchestrator.core.requests.legacy.reading import Job
from trainmaster.orchestrator.core.requests.spec import ParameterType
from trainmaster.orchestrator.core.requests.study import ALGORITHMS, SCALES
from trainmaster.orchestrator.core.requests.translation.fields import Fields, copy_keys, inverse
from trainmaster.orchestrator.core.requests.translation.own_document import OwnDocument
from trainmaster.orchestrator.core.requests.vertex.study import GOALS

DEFAULT_TAG = "training/hptuning/metric"
_TYPES = {kind.upper(): str(kind) for kind in ParameterType}
_RANGE = {"minValue": "min", "maxValue": "max"}
_COUNTS = {"maxParallelTrials": "parallel_trials", "maxFailedTrials": "max_failed_trials"}
_LISTS = {"CATEGORICAL": "categoricalValues", "DISCRETE": "discreteValues"}


def write_hyperparameters(job: Job) -> None:
    """Write the part that only a tuning has."""
    part = job.part("hyperparameters", "tuning")
    if part is None:
        return
    written, tuning = part
    _write_metric(written, tuning)
    trials = written.number("maxTrials")
    tuning.put("max_trials", 1 if trials is None else trials, written.at("maxTrials"))
    copy_keys(written, tuning, _COUNTS, Fields.number)
    parameters = tuning.inner("parameters", written.at("params"))
    for parameter in written.items("params"):
        _write_parameter(parameter, parameters)
    _write_algorithm(written, tuning)
    _refuse_resumption(written)
    _write_early_stopping(written, tuning)


def _write_metric(written: Fields, tuning: OwnDocument) -> None:
    metric = OwnDocument(tuning.translation, (*tuning.path, "metrics", 0))
    tuning.put("metrics", [metric.content], written.path)
    metric.translation.place(metric.path, written.path)
    tag = written.get("hyperparameterMetricTag")
    metric.put("id", DEFAULT_TAG if tag is None else tag, written.at("hyperparameterMetricTag"))
    # A word that is none of these is a fault already; the schema need not miss the goal too.
    metric.put("goal", written.word("goal", GOALS) if written.has("goal") else "maximize", written.at("goal"))


def _write_algorithm(written: Fields, tuning: OwnDocument) -> None:
    if written.get("algorithm") != "POPULATION_BASED_TRAINING":
        tuning.put("algorithm", written.word("algorithm", inverse(ALGORITHMS)), written.at("algorithm"))
        return
    repair = "write algorithm: ALGORITHM_UNSPECIFIED, the Bayesian search, which is the nearest"
    written.refuse("algorithm", "Vertex AI does not support population based training", repair=repair)


def _refuse_resumption(written: Fields) -> None:
    if written.has("resumePreviousJobId"):
        repair = "remove it and narrow the ranges of params to what the earlier trials found best"
        problem = "a Vertex AI study cannot take over an earlier study's trials"
        written.refuse("resumePreviousJobId", problem, repair=repair)


def _write_early_stopping(written: Fields, tuning: OwnDocument) -> None:
    key = "enableTrialEarlyStopping"
    stops = written.get(key)
    if stops is True:
        tuning.put("early_stopping", {"rule": "median"}, written.at(key))
        problem = "it becomes the median rule, Vertex AI's nearest to the old service's own"
        written.warn(key, problem, found="")
    elif stops not in (None, False):
        written.refuse(key, "expected true or false")


def _write_parameter(spec: Fields, parameters: OwnDocument) -> None:
    name = spec.get("parameterName")
    if not isinstance(name, str) or name in parameters.content:
        problem = "duplicate parameter" if isinstance(name, str) else "expected a name"
        path = spec.path if spec.kind_fault else spec.at("parameterName")
        spec.translation.refuse(path, problem, value=name)
        spec.pass_over()
        return
    own = parameters.inner(name, spec.path)
    own.put("type", spec.word("type", _TYPES), spec.at("type"))
    _write_range(spec, own)
    _write_values(spec, own)
    if spec.get("scaleType") not in (None, "NONE"):
        own.put("scale", spec.word("scaleType", inverse(SCALES)), spec.at("scaleType"))


def _write_range(spec: Fields, own: OwnDocument) -> None:
    kind = spec.get("type")
    for theirs, ours in _RANGE.items():
        if kind == "DISCRETE" and spec.has(theirs):
            problem = "a DISCRETE parameter has its discreteValues; this was never read"
            spec.warn(theirs, problem, found="")
        else:
            copy_keys(spec, own, {theirs: ours}, Fields.number if kind == "INTEGER" else Fields.get)


def _write_values(spec: Fields, own: OwnDocument) -> None:
    kind = spec.get("type")
    wanted = _LISTS.get(kind) if isinstance(kind, str) else None
    for key in _LISTS.values():
        if key == wanted or (wanted is None and spec.has(key)):
            copy_keys(spec, own, {key: "values"})
        elif spec.get(key):
            repair = f"write the values in {wanted}, or change the type"
            spec.refuse(key, f"a {kind} parameter has no {key}", repair=repair)
