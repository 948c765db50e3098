"""What the replicas run: images of the user's own, or Python packages in a prebuilt one."""

from collections.abc import Collection

from trainmaster.orchestrator.core.documents.faults import listed
from trainmaster.orchestrator.core.requests.legacy.reading import MASTER, OTHERS, ROLES, Job, Role
from trainmaster.orchestrator.core.requests.legacy.tables import (
    EXECUTOR,
    EXECUTOR_SAYS,
    GCLOUD_FLAGS,
    IMAGE_HOSTS,
    PYTHONS,
    RETIRED_PYTHONS,
    RETIRED_RUNTIMES,
    RUNTIMES,
)
from trainmaster.orchestrator.core.requests.placeholders import literal
from trainmaster.orchestrator.core.requests.translation.fields import copy_keys
from trainmaster.orchestrator.core.requests.translation.own_document import OwnDocument

_PACKAGE_KEYS = ("packageUris", "pythonModule", "runtimeVersion", "pythonVersion")
_OWN = ("containerCommand", "containerArgs")
_JOB_DIR = "--job-dir"
_PYTHON_REPAIR = (
    "build an image and write masterConfig: {imageUri: …} "
    "(docs/how-to/ai-platform.md#packages-in-your-own-image)"
)


def write_programs(job: Job) -> None:
    """What is run, by every role of the cluster."""
    spec = job.spec
    images = [role for role in ROLES if job.config(role).has("imageUri")]
    source = spec.at("args") if spec.has("args") else spec.at("jobDir")
    job.own.put("args", _with_job_dir(job, spec.get("args")), source)
    if images:
        _write_containers(job, images)
    else:
        _write_packages(job)
    for config in job.configs.values():
        if config.has("tpuTfVersion"):
            problem = "it belongs to separate TPU nodes, which are no longer offered"
            config.refuse("tpuTfVersion", problem, found="", repair="remove it")


def _with_job_dir(job: Job, args: object) -> object:
    """The arguments with `--job-dir DIR` after them, two words, as the service appended them."""
    job_dir = job.spec.get("jobDir")
    if not isinstance(job_dir, str) or not (args is None or isinstance(args, list)):
        return literal(args)
    return literal([*(args or ()), _JOB_DIR, job_dir])


def _write_containers(job: Job, images: list[Role]) -> None:
    spec, master = job.spec, job.config(MASTER)
    for key in filter(spec.has, _PACKAGE_KEYS):
        repair = f"remove {key}, or {listed(f'{role.config_key}.imageUri' for role in images)}"
        spec.refuse(key, "a job runs an image or Python packages, not both", repair=repair)
    if MASTER not in images:
        problem = "missing: masterConfig.imageUri, the image of the master and of every role without one"
        repair = f"write masterConfig: {{imageUri: {job.config(images[0]).get('imageUri')}}}"
        spec.refuse(MASTER.config_key, problem, found="", repair=repair)
    where = master.at("imageUri") if MASTER in images else master.path
    job.own.put("image", master.get("imageUri"), where)
    for role in filter(job.has, ROLES):
        _write_container(job, role)
    _warn_of_lonely_command(job)


def _write_container(job: Job, role: Role) -> None:
    spec, config, own = job.spec, job.config(role), job.replicas(role)
    if role is not MASTER and config.has("imageUri"):
        copy_keys(config, own, {"imageUri": "image"})
        # A role with a separate image inherits nothing from the top, where args is.
        own.put("args", job.own.content.get("args"), spec.at("args"))
    for key in filter(config.has, _OWN):
        if spec.has("args"):
            repair = f"remove args and write them in {role.config_key}.containerArgs"
            config.refuse(key, f"{key} and args are mutually exclusive", repair=repair)
    copy_keys(config, own, {"containerCommand": "command"})
    if config.has("containerArgs"):
        own.put("args", _with_job_dir(job, config.get("containerArgs")), config.at("containerArgs"))


def _warn_of_lonely_command(job: Job) -> None:
    """The documentation says only of the image that the other roles inherit the master's."""
    if not any(map(job.config(MASTER).has, _OWN)):
        return
    for role in filter(job.has, OTHERS):
        if not any(map(job.config(role).has, ("imageUri", *_OWN))):
            problem = (
                f"the {role.word} run the master's image, but not its containerCommand and containerArgs"
            )
            repair = f"write them in {role.config_key} too where they are meant for the {role.word}"
            job.spec.warn(MASTER.config_key, problem, found="", repair=repair)


def _write_packages(job: Job) -> None:
    spec = job.spec
    for config in job.configs.values():
        for key in filter(config.has, _OWN):
            repair = "write them in args, or name the image in masterConfig.imageUri"
            config.refuse(key, "only a job with its own image supports it", repair=repair)
    if not any(map(spec.has, _PACKAGE_KEYS)):
        _refuse_nothing_to_run(job)
        return
    for key, flag in GCLOUD_FLAGS.items():
        if not spec.has(key):
            repair = f"write the value you gave gcloud as {flag} into the file"
            spec.refuse(key, "missing: a Python package job needs it", repair=repair)
    _check_runtime(job)
    _check_python(job)
    _write_package(job, job.own, MASTER)
    for role in filter(job.has, OTHERS):
        if _processor(job, role) != _processor(job, MASTER):
            _write_package(job, job.replicas(role), role)
            job.replicas(role).put("args", job.own.content.get("args"), spec.at("args"))


def _write_package(job: Job, into: OwnDocument, role: Role) -> None:
    spec = job.spec
    package = into.inner("python_package", spec.path)
    image = EXECUTOR.format(host=_host(spec.get("region")), kind=_processor(job, role))
    package.put("executor_image", image, spec.at("runtimeVersion"))
    copy_keys(spec, package, {"packageUris": "uris", "pythonModule": "module"})


def _processor(job: Job, role: Role) -> str:
    return "gpu" if "accelerator" in job.replicas(role).content else "cpu"


def _host(region: object) -> str:
    return IMAGE_HOSTS.get(region.partition("-")[0], "us") if isinstance(region, str) else "us"


def _refuse_nothing_to_run(job: Job) -> None:
    job.spec.refuse(
        MASTER.config_key,
        "the file does not say what to run",
        found="",
        allowed="masterConfig.imageUri, or packageUris, pythonModule and runtimeVersion",
        repair="write what you gave gcloud as --master-image-uri, or as "
        f"{listed(GCLOUD_FLAGS.values())}, into the file",
    )
    # The schema would miss the image as well, at the same place.
    job.own.translation.place(("image",), job.spec.at(MASTER.config_key))


def _check_runtime(job: Job) -> None:
    runtime = job.spec.get("runtimeVersion")
    if runtime in RETIRED_RUNTIMES:
        problem = "retired: no TensorFlow 1 image is offered any more"
        job.spec.refuse("runtimeVersion", problem, among=RUNTIMES, repair=_PYTHON_REPAIR)
    elif runtime in RUNTIMES:
        job.spec.warn(
            "runtimeVersion",
            f"it runs in the nearest prebuilt container, with {EXECUTOR_SAYS}",
            repair="check the program with these versions, or build an image and name it in masterConfig.imageUri",
        )
    elif runtime is not None:
        _refuse_version(job, "runtimeVersion", RUNTIMES, RETIRED_RUNTIMES)


def _check_python(job: Job) -> None:
    python = job.spec.get("pythonVersion")
    if python in RETIRED_PYTHONS:
        problem = "retired: no image offers this Python version any more"
        job.spec.refuse("pythonVersion", problem, among=PYTHONS, repair=_PYTHON_REPAIR)
    elif python is not None and python not in PYTHONS:
        _refuse_version(job, "pythonVersion", PYTHONS, RETIRED_PYTHONS)


def _refuse_version(job: Job, key: str, allowed: Collection[str], retired: Collection[str]) -> None:
    """A version that never was, or one without quotes: in YAML 2.10 is the number 2.1, so both may be meant."""
    found = job.spec.get(key)
    meant = [f"'{text}'" for text in (str(found), f"{found}0") if text in allowed]
    problem, repair = "expected a string", "write one of these, in quotes"
    if isinstance(found, str):
        problem, repair = "not a version that existed", ""
    elif meant:
        repair = f"quote it: {' or '.join(meant)}"
    elif str(found) in retired:
        problem, repair = f"{problem}, and '{found}' is retired", _PYTHON_REPAIR
    job.spec.refuse(key, problem, among=allowed, repair=repair)
