"""A studySpec and its trial counts, as the API spells them, in the project's dialect."""

from collections.abc import Mapping

from trainmaster.orchestrator.core.documents.faults import listed
from trainmaster.orchestrator.core.requests import study as tables
from trainmaster.orchestrator.core.requests.fields import Fields, copy_keys, inverse, number
from trainmaster.orchestrator.core.requests.own_document import OwnDocument
from trainmaster.orchestrator.core.requests.spec import ParameterType

_TYPES = {f"{kind}ValueSpec": str(kind) for kind in ParameterType}
GOALS = {"MAXIMIZE": "maximize", "MINIMIZE": "minimize", "GOAL_TYPE_UNSPECIFIED": "maximize"}
_SCALES = {"SCALE_TYPE_UNSPECIFIED": None, **inverse(tables.SCALES)}
_MEASUREMENTS = {"MEASUREMENT_SELECTION_TYPE_UNSPECIFIED": None, **inverse(tables.MEASUREMENTS)}
_NOISES = {"OBSERVATION_NOISE_UNSPECIFIED": None, **inverse(tables.NOISES)}
_CHOICES: tuple[tuple[str, str, Mapping[str, str | None]], ...] = (
    ("algorithm", "algorithm", inverse(tables.ALGORITHMS)),
    ("measurement", "measurementSelectionType", _MEASUREMENTS),
    ("observation_noise", "observationNoise", _NOISES),
)


def write_tuning(job: Fields, own: OwnDocument) -> None:
    """Write the part of a tuning job that a custom job has not."""
    tuning = OwnDocument(own.translation, ("tuning",))
    own.content["tuning"] = tuning.content
    # gcloud's own defaults: one trial, one at once.
    trials = job.number("maxTrialCount")
    if trials is None:
        repair = "write maxTrialCount, which gcloud's flag --max-trial-count sets for a file without it"
        own.translation.warn(job.at("maxTrialCount"), "missing, so the study has one trial", repair=repair)
    tuning.put("max_trials", 1 if trials is None else trials, job.at("maxTrialCount"))
    counts = {"parallelTrialCount": "parallel_trials", "maxFailedTrialCount": "max_failed_trials"}
    copy_keys(job, tuning, counts, Fields.number)
    study = job.fields("studySpec")
    tuning.put("metrics", [], study.at("metrics"))
    for index, metric in enumerate(study.items("metrics")):
        _write_metric(metric, tuning.member("metrics", index, metric.path))
    parameters = tuning.inner("parameters", study.at("parameters"))
    for parameter in study.items("parameters"):
        _write_parameter(parameter, parameters)
    for ours, theirs, words in _CHOICES:
        tuning.put(ours, study.word(theirs, words), study.at(theirs))
    _write_early_stopping(study, tuning)
    _write_stop_study(study, tuning)


def _write_metric(metric: Fields, own: OwnDocument) -> None:
    copy_keys(metric, own, {"metricId": "id"})
    # Unspecified means maximize, says the service.
    goal = metric.word("goal", GOALS) if metric.has("goal") else "maximize"
    own.put("goal", goal, metric.at("goal"))
    if metric.has("safetyConfig"):
        safety = own.inner("safety", metric.at("safetyConfig"))
        copy_keys(metric.fields("safetyConfig"), safety, inverse(tables.SAFETY))


def named_parameter(spec: Fields, key: str, parameters: OwnDocument) -> OwnDocument | None:
    """The parameter in our own document, by its name under the key; None, with a fault, without a name or with another's."""
    name = spec.get(key)
    if isinstance(name, str) and name not in parameters.content:
        return parameters.inner(name, spec.path)
    problem = "duplicate parameter" if isinstance(name, str) else "expected a name"
    path = spec.path if spec.kind_fault else spec.at(key)
    spec.translation.refuse(path, problem, value=name)
    spec.pass_over()
    return None


def _write_parameter(spec: Fields, parameters: OwnDocument) -> None:
    own = named_parameter(spec, "parameterId", parameters)
    if own is None:
        return
    kinds = [kind for kind in _TYPES if spec.has(kind)]
    if len(kinds) != 1:
        problem = f"expected exactly one of {listed(_TYPES)}"
        spec.translation.refuse(spec.path, problem, value=kinds)
    own.translation.place((*own.path, "type"), spec.path)
    for kind in kinds[:1]:
        own.put("type", _TYPES[kind], spec.at(kind))
        _write_values(spec.fields(kind), own)
    own.put("scale", spec.word("scaleType", _SCALES), spec.at("scaleType"))
    for index, condition in enumerate(spec.items("conditionalParameterSpecs")):
        _write_condition(condition, own.member("conditional", index, condition.path))


def _write_values(ranged: Fields, own: OwnDocument) -> None:
    kind = own.content["type"]
    names = ("min", "max") if kind in ("double", "integer") else ("values",)
    for ours in (*names, "default"):
        theirs = tables.VALUES[ours]
        found = ranged.get(theirs)
        if found is None and ours in ("min", "max"):
            # The API's JSON leaves zeros out, and reads what is left out as zero.
            ranged.warn(theirs, "missing; Vertex AI reads this as 0")
            found = 0
        own.put(ours, number(found) if kind == "integer" else found, ranged.at(theirs))


def _write_condition(condition: Fields, own: OwnDocument) -> None:
    own.translation.place((*own.path, "when"), condition.path)
    for kind, key in tables.PARENTS.items():
        if not condition.has(key):
            continue
        parent = condition.fields(key)
        values = parent.get("values")
        if kind == "integer" and isinstance(values, list):
            values = [number(value) for value in values]
        own.put("when", values, parent.at("values"))
    parameters = OwnDocument(own.translation, (*own.path, "parameters"))
    own.content["parameters"] = parameters.content
    _write_parameter(condition.fields("parameterSpec"), parameters)


def _write_early_stopping(study: Fields, tuning: OwnDocument) -> None:
    rules = [(rule, key) for rule, key in tables.STOPPING_KEYS.items() if study.has(key)]
    for _, key in rules[1:]:
        study.refuse(key, "a study can have only one early stopping rule", value=key)
    for rule, key in rules[:1]:
        written = study.fields(key)
        stopping = tuning.inner("early_stopping", written.path)
        stopping.content["rule"] = str(rule)
        for ours, theirs in tables.STOPPING_SETTINGS.items():
            if written.has(theirs):
                stopping.put(ours, written.number(theirs), written.at(theirs))


def _write_stop_study(study: Fields, tuning: OwnDocument) -> None:
    written = study.fields("studyStoppingConfig")
    if not study.has("studyStoppingConfig"):
        return
    stop = tuning.inner("stop_study", written.path)
    for ours, theirs in tables.STOP_STUDY.items():
        read = Fields.duration if theirs.startswith("maxDuration") else Fields.number
        copy_keys(written, stop, {theirs: ours}, read)
    constraints = {key: written.fields(key) for key, _ in tables.STOP_STUDY_TIMES.values()}
    for ours, (constraint, kind) in tables.STOP_STUDY_TIMES.items():
        read = Fields.duration if kind == "maxDuration" else Fields.get
        copy_keys(constraints[constraint], stop, {kind: ours}, read)
