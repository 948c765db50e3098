"""A HyperparameterTuningJob as its API spells it, in camelCase or snake_case, said in our own way.

`gcloud ai hp-tuning-jobs create --config` takes the same files.

The translation keeps, for every place of our own document, the place in the text that it came from, so
that faults name what the user wrote. What has no place in a request is a fault; nothing is dropped.

Source: https://cloud.google.com/sdk/gcloud/reference/ai/hp-tuning-jobs/create and
https://cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.hyperparameterTuningJobs
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.core.faults import Fault, PathPart, json_path, listed, nearest, shown
from orchestrator.core.launch.study import (
    ALGORITHMS,
    MEASUREMENTS,
    SCALES,
    STOP_STUDY,
    STOP_STUDY_TIMES,
    STOPPING_KEYS,
    STOPPING_SETTINGS,
)

Path = tuple[PathPart, ...]
MODEL_NAME_LABEL = "model_name"
"""The label that names the model; without it the display name does."""
_MARKS = frozenset({"studySpec", "study_spec", "trialJobSpec", "trial_job_spec"})
_SECONDS = re.compile(r"([0-9]+)(\.0+)?s")
_WHOLE = re.compile(r"-?[0-9]{1,20}")
_TYPES = {
    "doubleValueSpec": "double",
    "integerValueSpec": "integer",
    "categoricalValueSpec": "categorical",
    "discreteValueSpec": "discrete",
}
_PARENTS = ("parentDiscreteValues", "parentIntValues", "parentCategoricalValues")
_JOB_KEYS = {"serviceAccount": "service_account", "network": "network", "tensorboard": "tensorboard"}
_POOL_ROLES = ("chief", "workers")
_ACCELERATOR_KEYS = {"acceleratorType": "type", "acceleratorCount": "count"}


@dataclass(frozen=True, kw_only=True)
class Translated:
    """A request in our own way. `places` pairs paths of it with the written ones; none means they are the same."""

    document: Mapping[str, Any]
    places: Mapping[str, str] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()

    def written_path(self, path: str) -> str:
        """Where the text says what our own document has at `path`."""
        return _moved(path, self.places)

    def own_path(self, path: str) -> str:
        """Where our own document has what the text says at `path`."""
        return _moved(path, {written: mine for mine, written in self.places.items()})


def own(document: Mapping[str, Any]) -> Translated:
    """A document in our own way, as it is."""
    return Translated(document=document)


def is_vertex(document: Mapping[str, object]) -> bool:
    """Whether the document is a HyperparameterTuningJob as the API spells it."""
    return bool(_MARKS & set(document))


def translated(document: Mapping[str, Any]) -> Translated:
    """The tuning job in our own way; what was wrong with its form is in `faults`."""
    return _Translation().whole(document)


def _moved(path: str, places: Mapping[str, str]) -> str:
    known = path
    while known not in places:
        cut = max(known.rfind("."), known.rfind("["))
        if cut <= 0:
            return path
        known = known[:cut]
    return places[known] + path[len(known) :]


class _Fields:
    """A mapping of the text, its keys by their camelCase names, and which of them were asked for."""

    def __init__(self, value: object, path: Path) -> None:
        self.path = path
        self.kind_fault = not isinstance(value, Mapping)
        self._value: Mapping[str, object] = value if isinstance(value, Mapping) else {}
        self._keys = {_camel(str(key)): str(key) for key in self._value}
        self._asked: set[str] = set()

    def get(self, name: str) -> object:
        self._asked.add(name)
        return self._value.get(self._keys.get(name, name))

    def has(self, name: str) -> bool:
        self._asked.add(name)
        return name in self._keys

    def at(self, name: str) -> Path:
        return (*self.path, self._keys.get(name, name))

    def unknown(self) -> list[Fault]:
        """A fault for every key that nobody asked for."""
        known = sorted(self._asked)
        return [
            Fault(
                path=json_path((*self.path, self._keys[name])),
                problem="this key has no place in a request",
                found=shown(self._keys[name]),
                allowed=listed(known, most=20),
                repair=nearest(name, [each for each in known if each not in self._keys]),
            )
            for name in sorted(set(self._keys) - self._asked)
        ]


class _Translation:
    """One document's translation: the places and the faults found on the way."""

    def __init__(self) -> None:
        self._places: dict[str, str] = {}
        self._faults: list[Fault] = []

    def whole(self, document: Mapping[str, Any]) -> Translated:
        job = _Fields(document, ())
        labels = job.get("labels")
        kept = labels if isinstance(labels, Mapping) else {}
        name, where = kept.get(MODEL_NAME_LABEL), (*job.at("labels"), MODEL_NAME_LABEL)
        if name is None:
            name, where = job.get("displayName"), job.at("displayName")
        job.has("displayName")
        mine: dict[str, Any] = {}
        self._put(mine, (), "model_name", name, where)
        if labels is not None:
            rest = {key: value for key, value in kept.items() if key != MODEL_NAME_LABEL}
            self._put(mine, (), "labels", rest if isinstance(labels, Mapping) else labels, job.at("labels"))
        self._job_spec(mine, self._fields(job, "trialJobSpec"))
        mine["tuning"] = self._tuning(job)
        self._faults += job.unknown()
        return Translated(document=mine, places=self._places, faults=tuple(sorted(self._faults)))

    def _put(self, into: dict[str, Any], here: Path, key: str, value: object, source: Path) -> None:
        self._places[json_path((*here, key))] = json_path(source)
        if value is not None:
            into[key] = value

    def _fields(self, parent: _Fields, name: str) -> _Fields:
        there, value = parent.has(name), parent.get(name)
        fields = _Fields(value, parent.at(name))
        if there and fields.kind_fault:
            path = json_path(fields.path)
            self._faults.append(Fault(path=path, problem="a mapping is wanted here", found=shown(value)))
        return fields

    def _list(self, parent: _Fields, name: str) -> list[object]:
        there, value = parent.has(name), parent.get(name)
        if isinstance(value, list):
            return value
        if there:
            path = json_path(parent.at(name))
            self._faults.append(Fault(path=path, problem="a list is wanted here", found=shown(value)))
        return []

    def _job_spec(self, mine: dict[str, Any], spec: _Fields) -> None:
        for theirs, ours in _JOB_KEYS.items():
            self._put(mine, (), ours, spec.get(theirs), spec.at(theirs))
        output = self._fields(spec, "baseOutputDirectory")
        if spec.has("baseOutputDirectory"):
            mine["output"] = {}
            prefix = output.get("outputUriPrefix")
            self._put(mine["output"], ("output",), "prefix_uri", prefix, output.at("outputUriPrefix"))
            self._faults += output.unknown()
        self._scheduling(mine, spec)
        self._pools(mine, spec)
        self._faults += spec.unknown()

    def _scheduling(self, mine: dict[str, Any], spec: _Fields) -> None:
        written = self._fields(spec, "scheduling")
        if not spec.has("scheduling"):
            return
        here, scheduling = ("scheduling",), mine.setdefault("scheduling", {})
        self._put(scheduling, here, "timeout_s", _seconds(written.get("timeout")), written.at("timeout"))
        restart = written.get("restartJobOnWorkerRestart")
        source = written.at("restartJobOnWorkerRestart")
        self._put(scheduling, here, "restart_on_worker_restart", restart, source)
        strategy = written.get("strategy")
        if strategy not in (None, "STANDARD", "SPOT"):
            self._faults.append(_not_one_of(written.at("strategy"), strategy, ("STANDARD", "SPOT")))
        elif strategy == "SPOT":
            self._put(scheduling, here, "spot", True, written.at("strategy"))
        self._faults += written.unknown()

    def _pools(self, mine: dict[str, Any], spec: _Fields) -> None:
        pools = self._list(spec, "workerPoolSpecs")
        cluster: dict[str, Any] = {}
        self._put(mine, (), "cluster", cluster, spec.at("workerPoolSpecs"))
        first: object = None
        for number, value in enumerate(pools):
            pool = _Fields(value, (*spec.at("workerPoolSpecs"), number))
            if number >= len(_POOL_ROLES):
                self._refuse(pool.path, "a request has a chief and workers, in pools 0 and 1", value)
                continue
            self._pool(cluster, _POOL_ROLES[number], pool)
            container = self._fields(pool, "containerSpec")
            if number == 0:
                first = pool.get("containerSpec")
                self._container(mine, container)
            elif pool.get("containerSpec") != first:
                self._refuse(container.path, "every replica runs the same container", container.path[-1])
            self._faults += pool.unknown()

    def _pool(self, cluster: dict[str, Any], role: str, pool: _Fields) -> None:
        here: Path = ("cluster", role)
        mine: dict[str, Any] = {}
        self._put(cluster, ("cluster",), role, mine, pool.path)
        count = _number(pool.get("replicaCount"))
        if role == "workers":
            self._put(mine, here, "count", 1 if count is None else count, pool.at("replicaCount"))
        elif count not in (None, 1):
            self._refuse(pool.at("replicaCount"), "there is exactly one chief", count)
        machine = self._fields(pool, "machineSpec")
        self._put(mine, here, "machine", machine.get("machineType"), machine.at("machineType"))
        if machine.has("acceleratorType") or machine.has("acceleratorCount"):
            mine["accelerator"] = {}
            for theirs, ours in _ACCELERATOR_KEYS.items():
                value = _number(machine.get(theirs))
                inner = (*here, "accelerator")
                self._put(mine["accelerator"], inner, ours, value, machine.at(theirs))
        self._faults += machine.unknown()
        disk = self._fields(pool, "diskSpec")
        if pool.has("diskSpec"):
            mine["disk"] = {}
            inner = (*here, "disk")
            self._put(mine["disk"], inner, "type", disk.get("bootDiskType"), disk.at("bootDiskType"))
            size = _number(disk.get("bootDiskSizeGb"))
            self._put(mine["disk"], inner, "size_gb", size, disk.at("bootDiskSizeGb"))
            self._faults += disk.unknown()

    def _container(self, mine: dict[str, Any], container: _Fields) -> None:
        self._put(mine, (), "image", container.get("imageUri"), container.at("imageUri"))
        for key in ("command", "args"):
            self._put(mine, (), key, container.get(key), container.at(key))
        env: dict[str, Any] = {}
        for number, value in enumerate(self._list(container, "env")):
            entry = _Fields(value, (*container.at("env"), number))
            name, text = entry.get("name"), entry.get("value")
            if not isinstance(name, str) or name in env:
                problem = (
                    "each variable has a name of its own" if isinstance(name, str) else "a name is missing"
                )
                self._refuse(entry.at("name"), problem, name)
                continue
            self._put(env, ("env",), name, "" if text is None else text, entry.at("value"))
            self._faults += entry.unknown()
        if env:
            mine["env"] = env
        self._faults += container.unknown()

    def _tuning(self, job: _Fields) -> dict[str, Any]:
        here: Path = ("tuning",)
        mine: dict[str, Any] = {}
        # gcloud's own defaults: one trial, one at once.
        trials = _number(job.get("maxTrialCount"))
        self._put(mine, here, "max_trials", 1 if trials is None else trials, job.at("maxTrialCount"))
        parallel = _number(job.get("parallelTrialCount"))
        self._put(mine, here, "parallel_trials", parallel, job.at("parallelTrialCount"))
        failed = _number(job.get("maxFailedTrialCount"))
        self._put(mine, here, "max_failed_trials", failed, job.at("maxFailedTrialCount"))
        study = self._fields(job, "studySpec")
        self._put(mine, here, "metrics", self._metrics(study), study.at("metrics"))
        path = (*here, "parameters")
        parameters = self._parameters(self._list(study, "parameters"), study.at("parameters"), path)
        self._put(mine, here, "parameters", parameters, study.at("parameters"))
        for ours, theirs, names in (
            ("algorithm", "algorithm", ALGORITHMS),
            ("measurement", "measurementSelectionType", {**MEASUREMENTS}),
        ):
            words = {written: str(name) for name, written in names.items()}
            if ours == "measurement":
                words["MEASUREMENT_SELECTION_TYPE_UNSPECIFIED"] = "last"
            self._put(mine, here, ours, self._word(study, theirs, words), study.at(theirs))
        noise = self._word(study, "observationNoise", {"LOW": "low", "HIGH": "high"})
        self._put(mine, here, "observation_noise", noise, study.at("observationNoise"))
        self._stopping(mine, study)
        self._stop_study(mine, study)
        self._faults += study.unknown()
        return mine

    def _metrics(self, study: _Fields) -> list[dict[str, Any]]:
        metrics = []
        goals = {"MAXIMIZE": "maximize", "MINIMIZE": "minimize", "GOAL_TYPE_UNSPECIFIED": "maximize"}
        for number, value in enumerate(self._list(study, "metrics")):
            metric = _Fields(value, (*study.at("metrics"), number))
            here: Path = ("tuning", "metrics", number)
            mine: dict[str, Any] = {}
            self._places[json_path(here)] = json_path(metric.path)
            self._put(mine, here, "id", metric.get("metricId"), metric.at("metricId"))
            # Unspecified means maximize, says the service.
            goal = self._word(metric, "goal", goals) if metric.has("goal") else "maximize"
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
        for number, value in enumerate(values):
            self._parameter(mine, here, _Fields(value, (*source, number)))
        return mine

    def _parameter(self, mine: dict[str, Any], here: Path, spec: _Fields) -> None:
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
        for kind in kinds[:1]:
            fields["type"] = _TYPES[kind]
            ranged = self._fields(spec, kind)
            names = ("min", "max") if fields["type"] in ("double", "integer") else ("values",)
            for ours in (*names, "default"):
                theirs = ours if ours == "values" else f"{ours}Value"
                found = ranged.get(theirs)
                value = _number(found) if fields["type"] == "integer" else found
                self._put(fields, inner, ours, value, ranged.at(theirs))
            self._faults += ranged.unknown()
        words = {written: ours for ours, written in SCALES.items()}
        self._put(fields, inner, "scale", self._word(spec, "scaleType", words), spec.at("scaleType"))
        conditions = self._list(spec, "conditionalParameterSpecs")
        if conditions:
            fields["conditional"] = [
                self._condition(
                    _Fields(value, (*spec.at("conditionalParameterSpecs"), number)),
                    (*inner, "conditional", number),
                )
                for number, value in enumerate(conditions)
            ]
        self._faults += spec.unknown()

    def _condition(self, condition: _Fields, here: Path) -> dict[str, Any]:
        mine: dict[str, Any] = {"parameters": {}}
        self._places[json_path(here)] = json_path(condition.path)
        for key in _PARENTS:
            if condition.has(key):
                parent = self._fields(condition, key)
                values = parent.get("values")
                if key == "parentIntValues" and isinstance(values, list):
                    values = [_number(value) for value in values]
                self._put(mine, here, "when", values, parent.at("values"))
        spec = self._fields(condition, "parameterSpec")
        self._parameter(mine["parameters"], (*here, "parameters"), spec)
        self._faults += condition.unknown()
        return mine

    def _stopping(self, mine: dict[str, Any], study: _Fields) -> None:
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
                    self._put(stopping, here, ours, _number(written.get(theirs)), written.at(theirs))
            self._faults += written.unknown()

    def _stop_study(self, mine: dict[str, Any], study: _Fields) -> None:
        written = self._fields(study, "studyStoppingConfig")
        if not study.has("studyStoppingConfig"):
            return
        here: Path = ("tuning", "stop_study")
        stop: dict[str, Any] = {}
        self._put(mine, ("tuning",), "stop_study", stop, written.path)
        for ours, theirs in STOP_STUDY.items():
            self._put(stop, here, ours, _seconds(written.get(theirs)), written.at(theirs))
        constraints = {key: self._fields(written, key) for key, _ in STOP_STUDY_TIMES.values()}
        for ours, (constraint, kind) in STOP_STUDY_TIMES.items():
            fields = constraints[constraint]
            self._put(stop, here, ours, _seconds(fields.get(kind)), fields.at(kind))
        for fields in (written, *constraints.values()):
            self._faults += fields.unknown()

    def _word(self, fields: _Fields, name: str, words: Mapping[str, str]) -> str | None:
        value = fields.get(name)
        if value is None:
            return None
        if isinstance(value, str) and value in words:
            return words[value]
        self._faults.append(_not_one_of(fields.at(name), value, tuple(words)))
        return None

    def _refuse(self, path: Path, problem: str, found: object) -> None:
        self._faults.append(Fault(path=json_path(path), problem=problem, found=shown(found)))


def _not_one_of(path: Path, found: object, allowed: tuple[str, ...]) -> Fault:
    return Fault(
        path=json_path(path),
        problem="not one of the values",
        found=shown(found),
        allowed=listed(allowed),
        repair=nearest(found, allowed) if isinstance(found, str) else "",
    )


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in rest)


def _number(value: object) -> object:
    """A 64-bit integer as the API writes it, in quotes or without; anything else as it is."""
    return int(value) if isinstance(value, str) and _WHOLE.fullmatch(value) else value


def _seconds(value: object) -> object:
    """A duration as the API writes it, `3600s`, in whole seconds; anything else as it is."""
    match = _SECONDS.fullmatch(value) if isinstance(value, str) else None
    return int(match[1]) if match else value
