"""The program of each replica: images of the user's own, or Python packages in a prebuilt one.

Source: https://cloud.google.com/vertex-ai/docs/training/pre-built-containers (read 2026-11).
"""

from collections.abc import Mapping

from trainmaster.orchestrator.core.documents.faults import listed
from trainmaster.orchestrator.core.requests.ai_platform.job import (
    MASTER,
    OTHERS,
    ROLES,
    LegacyJob,
    LegacyRole,
    Meaning,
    write_meaning,
)
from trainmaster.orchestrator.core.requests.fields import copy_keys
from trainmaster.orchestrator.core.requests.own_document import OwnDocument
from trainmaster.orchestrator.core.requests.placeholders import literal

# Vertex AI installs Python packages in its own prebuilt containers alone, so no other image can take their place:
# https://cloud.google.com/vertex-ai/docs/reference/rest/v1/CustomJobSpec#PythonPackageSpec ("You must use an image
# from this list"). Of those with TensorFlow this is the last; checks/programs.py says until when it is available.
EXECUTOR = "us-docker.pkg.dev/vertex-ai/training/tf-{kind}.2-17.py310:latest"
GCLOUD_FLAGS: Mapping[str, str] = {
    "packageUris": "--packages",
    "pythonModule": "--module-name",
    "runtimeVersion": "--runtime-version",
}
"""Where `gcloud ai-platform jobs submit training` took it from when the file did not say."""
_GONE = Meaning(
    problem="retired: no image with TensorFlow 1, Python 2.7 or Python 3.5 is offered any more",
    repair="build an image and write masterConfig: {imageUri: …} "
    "(docs/how-to/ai-platform.md#packages-in-your-own-image)",
    is_gone=True,
)
_NEAREST = Meaning(
    problem="it runs in the nearest prebuilt container, with TensorFlow 2.17 and Keras 3 with Python 3.10",
    repair="check the program with these versions, or build an image and name it in masterConfig.imageUri",
)
RUNTIMES = dict.fromkeys((f"2.{minor}" for minor in range(1, 12)), _NEAREST)
RUNTIMES |= dict.fromkeys((f"1.{minor}" for minor in range(16)), _GONE)
PYTHONS = {"3.7": Meaning(), "2.7": _GONE, "3.5": _GONE}
_PACKAGE_KEYS = (*GCLOUD_FLAGS, "pythonVersion")
_OWN = ("containerCommand", "containerArgs")


def write_programs(job: LegacyJob) -> None:
    """Write the program of every role of the cluster."""
    spec = job.spec
    images = [role for role in ROLES if job.configs[role].has("imageUri")]
    source = spec.at("args" if spec.has("args") else "jobDir")
    job.own.put("args", _with_job_dir(job, spec.get("args")), source)
    if images:
        _write_images(job, images)
    else:
        _write_packages(job)
    for config in job.configs.values():
        if config.has("tpuTfVersion"):
            problem = "it belongs to separate TPU nodes, which are no longer offered"
            config.refuse("tpuTfVersion", problem, found="", repair="remove it")


def _with_job_dir(job: LegacyJob, args: object) -> object:
    """The arguments with `--job-dir DIR` after them, two words, as the service appended them."""
    job_dir = job.spec.get("jobDir")
    if not isinstance(job_dir, str) or not (args is None or isinstance(args, list)):
        return literal(args)
    return literal([*(args or ()), "--job-dir", job_dir])


def _write_images(job: LegacyJob, images: list[LegacyRole]) -> None:
    spec, master = job.spec, job.configs[MASTER]
    for key in filter(spec.has, _PACKAGE_KEYS):
        repair = f"remove {key}, or {listed(f'{role.config_key}.imageUri' for role in images)}"
        spec.refuse(key, "a job runs an image or Python packages, not both", repair=repair)
    if MASTER not in images:
        problem = "missing: masterConfig.imageUri, the image of the master and of every role without one"
        repair = f"write masterConfig: {{imageUri: {job.configs[images[0]].get('imageUri')}}}"
        spec.refuse(MASTER.config_key, problem, found="", repair=repair)
    job.own.put("image", master.get("imageUri"), master.at("imageUri") if MASTER in images else master.path)
    for role in job.replicas:
        _write_container(job, role)
        # The documentation says only of the image that the other roles inherit the master's.
        is_alone = role in OTHERS and not any(map(job.configs[role].has, ("imageUri", *_OWN)))
        if is_alone and any(map(master.has, _OWN)):
            problem = (
                f"the {role.word} run the master's image, but not its containerCommand and containerArgs"
            )
            repair = f"write them in {role.config_key} too where they are meant for the {role.word}"
            spec.warn(MASTER.config_key, problem, found="", repair=repair)


def _write_container(job: LegacyJob, role: LegacyRole) -> None:
    spec, config, own = job.spec, job.configs[role], job.replicas[role]
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


def _write_packages(job: LegacyJob) -> None:
    spec = job.spec
    for config in job.configs.values():
        for key in filter(config.has, _OWN):
            repair = "write them in args, or name the image in masterConfig.imageUri"
            config.refuse(key, "only a job with its own image supports it", repair=repair)
    if not any(map(spec.has, _PACKAGE_KEYS)):
        problem, flags = "the file does not say what to run", listed(GCLOUD_FLAGS.values())
        allowed = "masterConfig.imageUri, or packageUris, pythonModule and runtimeVersion"
        repair = f"write what you gave gcloud as --master-image-uri, or as {flags}, into the file"
        spec.refuse(MASTER.config_key, problem, found="", allowed=allowed, repair=repair)
        # The schema would miss the image as well, at the same place.
        job.own.translation.place(("image",), spec.at(MASTER.config_key))
        return
    for key, flag in GCLOUD_FLAGS.items():
        if not spec.has(key):
            repair = f"write the value you gave gcloud as {flag} into the file"
            spec.refuse(key, "missing: a Python package job needs it", repair=repair)
    _check_version(job, "runtimeVersion", RUNTIMES)
    _check_version(job, "pythonVersion", PYTHONS)
    _write_package(job, job.own, MASTER)
    for role in OTHERS:
        if role in job.replicas and _processor(job, role) != _processor(job, MASTER):
            _write_package(job, job.replicas[role], role)
            job.replicas[role].put("args", job.own.content.get("args"), spec.at("args"))


def _write_package(job: LegacyJob, into: OwnDocument, role: LegacyRole) -> None:
    package = into.inner("python_package", job.spec.path)
    image = EXECUTOR.format(kind=_processor(job, role))
    package.put("executor_image", image, job.spec.at("runtimeVersion"))
    copy_keys(job.spec, package, {"packageUris": "uris", "pythonModule": "module"})


def _processor(job: LegacyJob, role: LegacyRole) -> str:
    return "gpu" if "accelerator" in job.replicas[role].content else "cpu"


def _check_version(job: LegacyJob, key: str, versions: Mapping[str, Meaning]) -> None:
    """A version without quotes is a number: in YAML 2.10 is 2.1, so both may be meant."""
    found = job.spec.get(key)
    if found is None or isinstance(found, str):
        write_meaning(job.spec, key, versions, OwnDocument(job.own.translation), key)
        return
    meant = [text for text in (str(found), f"{found}0") if text in versions]
    offered = [version for version in versions if not versions[version].is_gone]
    problem, repair = "expected a string", "write one of these, in quotes"
    if meant and meant[0] in offered:
        repair = f"quote it: {' or '.join(map(repr, meant))}"
    elif meant:
        problem, repair = f"{problem}, and '{found}' is retired", versions[meant[0]].repair
    job.spec.refuse(key, problem, among=offered, repair=repair)
