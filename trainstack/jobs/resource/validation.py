"""The faults for which the service refuses a CustomJob.

Sources: https://cloud.google.com/vertex-ai/docs/training/create-custom-job, …/training/distributed-training,
https://cloud.google.com/resource-manager/docs/creating-managing-labels and the comments of the
google.cloud.aiplatform.v1 messages, read 2026-11. The sentences are the project's: the service's are not
published.
"""

import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from google.cloud.aiplatform_v1.types.accelerator_type import AcceleratorType
from google.cloud.aiplatform_v1.types.custom_job import Scheduling

MAX_NAME, MAX_LABELS, MAX_LABEL, MAX_ENV, MAX_PACKAGES, MAX_POOLS = 128, 64, 64, 100, 100, 4
MAX_ARGUMENTS = 100_000
MAX_TIMEOUT_S = 7 * 24 * 3600

_OBJECT = re.compile(r"gs://[^/]+/.+")

# protobuf's generated messages are untyped: google-cloud-aiplatform ships no types for them.
Message = Any


def faults_of(job: Message) -> list[str]:
    """One sentence for each fault, with its path; none for an acceptable CustomJob."""
    return common_faults(job, "job_spec")


def common_faults(job: Message, spec: str) -> list[str]:
    """The faults in the name, the labels and the CustomJobSpec (the field `spec`) of any job."""
    return [
        *_name_faults(job.display_name),
        *_label_faults(job.labels),
        *_spec_faults(getattr(job, spec), spec),
    ]


def _name_faults(name: str) -> Iterator[str]:
    if not name:
        yield "display_name: a job needs a name; give 1 to 128 characters."
    if len(name) > MAX_NAME:
        yield f"display_name: at most {MAX_NAME} characters, found {len(name)}."


def _label_faults(labels: Message) -> Iterator[str]:
    if len(labels) > MAX_LABELS:
        yield f"labels: at most {MAX_LABELS}, found {len(labels)}."
    for key, value in labels.items():
        if not key or not _is_letter(key[0]) or not _is_label(key):
            yield (
                f"labels: invalid key {key!r}; 1 to {MAX_LABEL} lower-case letters, digits, '_' and '-', "
                "beginning with a letter."
            )
        if not _is_label(value):
            yield f"labels[{key!r}]: invalid value {value!r}; at most {MAX_LABEL} lower-case letters, digits, '_' and '-'."


def _is_letter(character: str) -> bool:
    # Letters without case, as in Arabic or Chinese, are allowed; uppercase and title case are not.
    return unicodedata.category(character) in {"Ll", "Lo", "Lm"}


def _is_label(text: str) -> bool:
    # Combining marks belong to international letters.
    return len(text) <= MAX_LABEL and all(
        character in "_-" or _is_letter(character) or unicodedata.category(character) in {"Nd", "Mn", "Mc"}
        for character in text
    )


def _spec_faults(spec: Message, at: str) -> Iterator[str]:
    pools = spec.worker_pool_specs
    if not pools:
        yield f"{at}.worker_pool_specs: at least one worker pool is required."
    if len(pools) > MAX_POOLS:
        yield f"{at}.worker_pool_specs: at most {MAX_POOLS} pools (chief, workers, parameter servers, evaluators), found {len(pools)}."
    for number, pool in enumerate(pools):
        if number == 0 or pool.ByteSize():
            yield from _pool_faults(pool, f"{at}.worker_pool_specs[{number}]", is_chief=number == 0)
    arguments = sum(len(text) for pool in pools for text in _arguments(pool))
    if arguments > MAX_ARGUMENTS:
        yield f"{at}: the arguments of all pools have at most {MAX_ARGUMENTS} characters in total, found {arguments}."
    yield from _scheduling_faults(spec.scheduling, f"{at}.scheduling")
    prefix = spec.base_output_directory.output_uri_prefix
    if spec.HasField("base_output_directory") and not prefix.startswith("gs://"):
        yield f"{at}.base_output_directory.output_uri_prefix: expected gs://BUCKET/PATH, found {prefix!r}."
    if spec.tensorboard and not spec.service_account:
        yield f"{at}.tensorboard: needs {at}.service_account as well."


def _pool_faults(pool: Message, path: str, *, is_chief: bool) -> Iterator[str]:
    if is_chief and pool.replica_count != 1:
        yield f"{path}.replica_count: the first pool is the chief and has exactly 1 replica, found {pool.replica_count}."
    if not is_chief and pool.replica_count < 1:
        yield f"{path}.replica_count: at least 1, found {pool.replica_count}; leave the pool empty to skip it."
    yield from _machine_faults(pool.machine_spec, f"{path}.machine_spec")
    match pool.WhichOneof("task"):
        case "container_spec":
            yield from _env_faults(pool.container_spec.env, f"{path}.container_spec.env")
            if not pool.container_spec.image_uri:
                yield f"{path}.container_spec.image_uri: required."
        case "python_package_spec":
            yield from _package_faults(pool.python_package_spec, f"{path}.python_package_spec")
        case _:
            yield f"{path}: one of container_spec and python_package_spec is required."


def _machine_faults(machine: Message, path: str) -> Iterator[str]:
    if not machine.machine_type:
        yield f"{path}.machine_type: required, for example 'n1-standard-4'."
    if machine.accelerator_type not in set(AcceleratorType):
        yield f"{path}.accelerator_type: unknown enum value {machine.accelerator_type}."
    if machine.accelerator_count < 0:
        yield f"{path}.accelerator_count: must not be negative, found {machine.accelerator_count}."
    if machine.accelerator_count and not machine.accelerator_type:
        yield f"{path}.accelerator_type: required with accelerator_count {machine.accelerator_count}."


def _package_faults(package: Message, path: str) -> Iterator[str]:
    yield from _env_faults(package.env, f"{path}.env")
    for field in ("executor_image_uri", "python_module"):
        if not getattr(package, field):
            yield f"{path}.{field}: required."
    if not 1 <= len(package.package_uris) <= MAX_PACKAGES:
        yield f"{path}.package_uris: 1 to {MAX_PACKAGES}, found {len(package.package_uris)}."
    for index, uri in enumerate(package.package_uris):
        if not _OBJECT.fullmatch(uri):
            yield f"{path}.package_uris[{index}]: expected gs://BUCKET/OBJECT, found {uri!r}."


def _env_faults(env: Message, path: str) -> Iterator[str]:
    if len(env) > MAX_ENV:
        yield f"{path}: at most {MAX_ENV} variables, found {len(env)}."
    for index, variable in enumerate(env):
        if not variable.name or "=" in variable.name or "\0" in variable.name + variable.value:
            yield f"{path}[{index}]: {variable.name!r} cannot be the name of an environment variable with a value."


def _scheduling_faults(scheduling: Message, path: str) -> Iterator[str]:
    if scheduling.strategy not in set(Scheduling.Strategy):
        yield f"{path}.strategy: unknown enum value {scheduling.strategy}."
    for field in ("timeout", "max_wait_duration"):
        if getattr(scheduling, field).ToTimedelta().total_seconds() < 0:
            yield f"{path}.{field}: must not be negative."
    if (
        scheduling.strategy == Scheduling.Strategy.FLEX_START
        and scheduling.timeout.ToTimedelta().total_seconds() > MAX_TIMEOUT_S
    ):
        yield f"{path}.timeout: at most {MAX_TIMEOUT_S}s with FLEX_START."


def _arguments(pool: Message) -> list[str]:
    return [*pool.container_spec.args, *pool.container_spec.command, *pool.python_package_spec.args]
