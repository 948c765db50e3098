"""A HyperparameterTuningJob as its API spells it, in camelCase or snake_case, said in our own way.

`gcloud ai hp-tuning-jobs create --config` takes the same files.

The translation keeps, for every place of our own document, the place in the text that it came from, so
that faults name what the user wrote. What has no place in a request is a fault; nothing is dropped.

Source: https://cloud.google.com/sdk/gcloud/reference/ai/hp-tuning-jobs/create and
https://cloud.google.com/vertex-ai/docs/reference/rest/v1/projects.locations.hyperparameterTuningJobs
"""

from collections.abc import Mapping
from typing import Any

from orchestrator.core.launch.vertex_fields import Fields, Path, Translated, not_one_of, number, seconds
from orchestrator.core.launch.vertex_study import StudyTranslation

MODEL_NAME_LABEL = "model_name"
"""The label that names the model; without it the display name does."""
_MARKS = frozenset({"studySpec", "study_spec", "trialJobSpec", "trial_job_spec"})
_JOB_KEYS = {"serviceAccount": "service_account", "network": "network", "tensorboard": "tensorboard"}
_POOL_ROLES = ("chief", "workers")
_ACCELERATOR_KEYS = {"acceleratorType": "type", "acceleratorCount": "count"}


def own(document: Mapping[str, Any], name: str | None) -> Translated:  # noqa: ARG001 - it has its own
    """A document in our own way, as it is."""
    return Translated(document=document)


def is_vertex(document: Mapping[str, object]) -> bool:
    """Whether the document is a HyperparameterTuningJob as the API spells it."""
    return bool(_MARKS & set(document))


def translated(document: Mapping[str, Any], name: str | None) -> Translated:  # noqa: ARG001 - it has its own
    """The tuning job in our own way; what was wrong with its form is in `faults`."""
    return _Translation().whole(document)


class _Translation(StudyTranslation):
    """One document's translation: the places and the faults found on the way."""

    def whole(self, document: Mapping[str, Any]) -> Translated:
        job = Fields(document, ())
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

    def _job_spec(self, mine: dict[str, Any], spec: Fields) -> None:
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

    def _scheduling(self, mine: dict[str, Any], spec: Fields) -> None:
        written = self._fields(spec, "scheduling")
        if not spec.has("scheduling"):
            return
        here, scheduling = ("scheduling",), mine.setdefault("scheduling", {})
        self._put(scheduling, here, "timeout_s", seconds(written.get("timeout")), written.at("timeout"))
        restart = written.get("restartJobOnWorkerRestart")
        source = written.at("restartJobOnWorkerRestart")
        self._put(scheduling, here, "restart_on_worker_restart", restart, source)
        strategy = written.get("strategy")
        if strategy not in (None, "STANDARD", "SPOT"):
            self._faults.append(not_one_of(written.at("strategy"), strategy, ("STANDARD", "SPOT")))
        elif strategy == "SPOT":
            self._put(scheduling, here, "spot", True, written.at("strategy"))
        self._faults += written.unknown()

    def _pools(self, mine: dict[str, Any], spec: Fields) -> None:
        pools = self._list(spec, "workerPoolSpecs")
        cluster: dict[str, Any] = {}
        self._put(mine, (), "cluster", cluster, spec.at("workerPoolSpecs"))
        first: object = None
        for index, value in enumerate(pools):
            pool = Fields(value, (*spec.at("workerPoolSpecs"), index))
            if index >= len(_POOL_ROLES):
                self._refuse(pool.path, "a request has a chief and workers, in pools 0 and 1", value)
                continue
            self._pool(cluster, _POOL_ROLES[index], pool)
            container = self._fields(pool, "containerSpec")
            if index == 0:
                first = pool.get("containerSpec")
                self._container(mine, container)
            elif pool.get("containerSpec") != first:
                self._refuse(container.path, "every replica runs the same container", container.path[-1])
            self._faults += pool.unknown()

    def _pool(self, cluster: dict[str, Any], role: str, pool: Fields) -> None:
        here: Path = ("cluster", role)
        mine: dict[str, Any] = {}
        self._put(cluster, ("cluster",), role, mine, pool.path)
        count = number(pool.get("replicaCount"))
        if role == "workers":
            self._put(mine, here, "count", 1 if count is None else count, pool.at("replicaCount"))
        elif count not in (None, 1):
            self._refuse(pool.at("replicaCount"), "there is exactly one chief", count)
        machine = self._fields(pool, "machineSpec")
        self._put(mine, here, "machine", machine.get("machineType"), machine.at("machineType"))
        if machine.has("acceleratorType") or machine.has("acceleratorCount"):
            mine["accelerator"] = {}
            for theirs, ours in _ACCELERATOR_KEYS.items():
                value = number(machine.get(theirs))
                inner = (*here, "accelerator")
                self._put(mine["accelerator"], inner, ours, value, machine.at(theirs))
        self._faults += machine.unknown()
        disk = self._fields(pool, "diskSpec")
        if pool.has("diskSpec"):
            mine["disk"] = {}
            inner = (*here, "disk")
            self._put(mine["disk"], inner, "type", disk.get("bootDiskType"), disk.at("bootDiskType"))
            size = number(disk.get("bootDiskSizeGb"))
            self._put(mine["disk"], inner, "size_gb", size, disk.at("bootDiskSizeGb"))
            self._faults += disk.unknown()

    def _container(self, mine: dict[str, Any], container: Fields) -> None:
        self._put(mine, (), "image", container.get("imageUri"), container.at("imageUri"))
        for key in ("command", "args"):
            self._put(mine, (), key, container.get(key), container.at(key))
        env: dict[str, Any] = {}
        for index, value in enumerate(self._list(container, "env")):
            entry = Fields(value, (*container.at("env"), index))
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
