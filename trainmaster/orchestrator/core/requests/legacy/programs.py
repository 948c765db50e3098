"""What the replicas run: images of the user's own, or Python packages in a prebuilt one."""

from collections.abc import Collection
from typing import Any

from trainmaster.orchestrator.core.documents.faults import json_path, listed
from trainmaster.orchestrator.core.requests.legacy.reading import MASTER, OTHERS, ROLES, Reading, Role
from trainmaster.orchestrator.core.requests.legacy.tables import (
    EXECUTOR,
    EXECUTOR_ENDS,
    EXECUTOR_SAYS,
    GCLOUD_FLAGS,
    IMAGE_HOSTS,
    PYTHONS,
    RETIRED_PYTHONS,
    RETIRED_RUNTIMES,
    RUNTIMES,
)
from trainmaster.orchestrator.core.requests.vertex.fields import Fields, Path

_PACKAGE_KEYS = ("packageUris", "pythonModule", "runtimeVersion", "pythonVersion")
_OWN = ("containerCommand", "containerArgs")
_JOB_DIR = "--job-dir"
_PYTHON_REPAIR = (
    f"runtimeVersion: '2.11' with pythonVersion: '3.7' is taken and runs with {EXECUTOR_SAYS}; "
    "or build an image and write masterConfig: {imageUri: …}"
)


class ProgramReading(Reading):
    """The part of the translation that says what is run."""

    def _programs(self, mine: dict[str, Any], spec: Fields) -> None:
        images = [role for role in ROLES if self._configs[role.ours].has("imageUri")]
        self._put_args(mine, spec)
        if images:
            self._containers(mine, spec, images)
        else:
            self._packages(mine, spec)
        for role in ROLES:
            config = self._configs[role.ours]
            if config.has("tpuTfVersion"):
                problem = "it belongs to TPU nodes beside a machine, which are no longer offered"
                self._wrong(config.at("tpuTfVersion"), problem, repair="take it out")
            self._faults += config.unknown()

    def _put_args(self, mine: dict[str, Any], spec: Fields) -> None:
        source = spec.at("args") if spec.has("args") else spec.at("jobDir")
        self._put(mine, (), "args", self._with_job_dir(spec.get("args"), spec), source)

    def _with_job_dir(self, args: object, spec: Fields) -> object:
        """The arguments with `--job-dir DIR` after them, two words, as the service appended them."""
        job_dir = spec.get("jobDir")
        if not isinstance(job_dir, str) or not (args is None or isinstance(args, list)):
            return args
        return [*(args or ()), _JOB_DIR, job_dir]

    def _containers(self, mine: dict[str, Any], spec: Fields, images: list[Role]) -> None:
        for key in _PACKAGE_KEYS:
            if spec.has(key):
                self._wrong(
                    spec.at(key),
                    "a job runs an image or Python packages, not both",
                    found=spec.get(key),
                    repair=f"take {key} out, or {listed(f'{role.config_key}.imageUri' for role in images)}",
                )
        master = self._configs[MASTER.ours]
        if MASTER not in images:
            self._wrong(
                master.path,
                "missing: masterConfig.imageUri, the image of the master and of every role without one",
                repair=f"write masterConfig: {{imageUri: {self._configs[images[0].ours].get('imageUri')}}}",
            )
        where = master.at("imageUri") if MASTER in images else master.path
        self._put(mine, (), "image", master.get("imageUri"), where)
        for role in ROLES:
            if role.ours in mine["cluster"]:
                self._container(mine, spec, role)
        self._lonely_command(mine, master)

    def _container(self, mine: dict[str, Any], spec: Fields, role: Role) -> None:
        config, fields = self._configs[role.ours], mine["cluster"][role.ours]
        here: Path = ("cluster", role.ours)
        if role is not MASTER and config.has("imageUri"):
            self._put(fields, here, "image", config.get("imageUri"), config.at("imageUri"))
            # A role with an image of its own takes nothing from the top, which is where args stand.
            self._put(fields, here, "args", mine.get("args"), spec.at("args"))
        for key in _OWN:
            if config.has(key) and spec.has("args"):
                self._wrong(
                    config.at(key),
                    f"{key} and args exclude one another",
                    found=config.get(key),
                    repair=f"take args out and write the words in {role.config_key}.containerArgs",
                )
        command = config.get("containerCommand")
        self._put(fields, here, "command", command, config.at("containerCommand"))
        if config.has("containerArgs"):
            args = self._with_job_dir(config.get("containerArgs"), spec)
            self._put(fields, here, "args", args, config.at("containerArgs"))

    def _lonely_command(self, mine: dict[str, Any], master: Fields) -> None:
        """Only the image is said to pass from the master to the others."""
        if not any(master.has(key) for key in _OWN):
            return
        for role in OTHERS:
            config = self._configs[role.ours]
            if role.ours in mine["cluster"] and not any(config.has(key) for key in ("imageUri", *_OWN)):
                self._warn(
                    master.path,
                    f"the {role.word} run the master's image, but not its containerCommand and containerArgs",
                    repair=f"write them in {role.config_key} too where they are meant for the {role.word}",
                )

    def _packages(self, mine: dict[str, Any], spec: Fields) -> None:
        for role in ROLES:
            config = self._configs[role.ours]
            for key in _OWN:
                if config.has(key):
                    self._wrong(
                        config.at(key),
                        "only a job with an image of its own has it",
                        found=config.get(key),
                        repair="write the words in args, or name the image in masterConfig.imageUri",
                    )
        if not any(spec.has(key) for key in _PACKAGE_KEYS):
            self._nothing_to_run(spec)
            return
        for key, flag in GCLOUD_FLAGS.items():
            if spec.get(key) is None:
                repair = f"what gcloud was given with {flag} is written into the file"
                self._wrong(spec.at(key), "missing: a job of Python packages needs it", repair=repair)
        self._runtime(spec)
        self._put_package(mine, spec, mine, ())
        chief = self._kind(mine, MASTER)
        for role in OTHERS:
            if role.ours in mine["cluster"] and self._kind(mine, role) != chief:
                fields, here = mine["cluster"][role.ours], ("cluster", role.ours)
                self._put_package(mine, spec, fields, here, role)
                self._put(fields, here, "args", mine.get("args"), spec.at("args"))

    def _put_package(
        self,
        mine: dict[str, Any],
        spec: Fields,
        into: dict[str, Any],
        here: Path,
        role: Role = MASTER,
    ) -> None:
        package: dict[str, Any] = {}
        inner = (*here, "python_package")
        self._put(into, here, "python_package", package, spec.path)
        image = EXECUTOR.format(host=_host(spec.get("region")), kind=self._kind(mine, role))
        self._put(package, inner, "executor_image", image, spec.at("runtimeVersion"))
        self._put(package, inner, "uris", spec.get("packageUris"), spec.at("packageUris"))
        self._put(package, inner, "module", spec.get("pythonModule"), spec.at("pythonModule"))

    @staticmethod
    def _kind(mine: dict[str, Any], role: Role) -> str:
        return "gpu" if "accelerator" in mine["cluster"][role.ours] else "cpu"

    def _nothing_to_run(self, spec: Fields) -> None:
        path = spec.at(MASTER.config_key)
        self._wrong(
            path,
            "the file does not say what to run",
            allowed="masterConfig.imageUri, or packageUris, pythonModule and runtimeVersion",
            repair="what gcloud was given with --master-image-uri, or with "
            f"{listed(GCLOUD_FLAGS.values())}, is written into the file",
        )
        # The schema would miss the image as well, at the same place.
        self._places["$.image"] = json_path(path)

    def _runtime(self, spec: Fields) -> None:
        runtime, python = spec.get("runtimeVersion"), spec.get("pythonVersion")
        if runtime in RETIRED_RUNTIMES:
            self._wrong(
                spec.at("runtimeVersion"),
                "retired: no image with TensorFlow 1 is offered any more",
                found=runtime,
                allowed=listed(RUNTIMES),
                repair=_PYTHON_REPAIR,
            )
        elif runtime in RUNTIMES:
            self._warn(
                spec.at("runtimeVersion"),
                f"it runs in today's nearest prebuilt container, with {EXECUTOR_SAYS}; "
                f"the list of prebuilt containers ends its availability on {EXECUTOR_ENDS}",
                found=runtime,
                repair="check the program with these versions, or build an image and name it in masterConfig.imageUri",
            )
        elif runtime is not None:
            self._not_a_version(spec.at("runtimeVersion"), runtime, RUNTIMES, RETIRED_RUNTIMES)
        if python in RETIRED_PYTHONS:
            allowed = listed(PYTHONS)
            path, problem = spec.at("pythonVersion"), "retired: no image has this Python any more"
            self._wrong(path, problem, found=python, allowed=allowed, repair=_PYTHON_REPAIR)
        elif python is not None and python not in PYTHONS:
            self._not_a_version(spec.at("pythonVersion"), python, PYTHONS, RETIRED_PYTHONS)

    def _not_a_version(
        self, path: Path, found: object, allowed: Collection[str], retired: Collection[str]
    ) -> None:
        """A version that never was, or one without quotes: in YAML 2.10 is the number 2.1, so both may be meant."""
        if isinstance(found, str):
            self._wrong(path, "no version that there was", found=found, allowed=listed(allowed))
            return
        meant = [f"'{text}'" for text in (str(found), f"{found}0") if text in allowed]
        problem, repair = "a string is wanted here", f"quote it: {' or '.join(meant)}"
        if not meant and str(found) in retired:
            problem, repair = f"{problem}, and '{found}' is retired", _PYTHON_REPAIR
        elif not meant:
            repair = "write one of these, in quotes"
        self._wrong(path, problem, found=found, allowed=listed(allowed), repair=repair)


def _host(region: object) -> str:
    return IMAGE_HOSTS.get(region.partition("-")[0], "us") if isinstance(region, str) else "us"
