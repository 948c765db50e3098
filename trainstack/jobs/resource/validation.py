"""The faults for which the service refuses a CustomJob.

Sources: https://cloud.google.com/vertex-ai/docs/training/create-custom-job, …/training/distributed-training,
https://cloud.google.com/resource-manager/docs/creating-managing-labels and the comments of the
google.cloud.aiplatform.v1 messages, read 2026-11. The sentences are the project's: the service's are not
published.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from google.cloud.aiplatform_v1.types.custom_job import Scheduling
from google.protobuf.json_format import MessageToDict

from trainstack.jobs.resource.machines import MachineTypes, Message, disk_faults, machine_faults
from trainstack.surface import Surface

MAX_NAME, MAX_LABELS, MAX_LABEL, MAX_ENV, MAX_PACKAGES, MAX_POOLS = 128, 64, 64, 100, 100, 4
MAX_ARGUMENTS = 100_000
MAX_TIMEOUT_S = 7 * 24 * 3600

_OBJECT = re.compile(r"gs://[^/]+/.+")
_ACCOUNT = re.compile(r"[a-z0-9.-]+@([a-z0-9.-]+\.)?gserviceaccount\.com")
_KEY = re.compile(r"projects/[^/]+/locations/(?P<location>[^/]+)/keyRings/[\w-]{1,63}/cryptoKeys/[\w-]{1,63}")
_NETWORK = re.compile(r"projects/[^/]+/global/networks/[^/]+")


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What a job may name where it runs. Without any, every well-formed name is accepted.

    Attributes:
        location: the region of the call.
        machines: the service's machine types.
        has_bucket: whether a bucket exists.
        surface: which fields are honoured; None for all.
    """

    location: str = ""
    machines: MachineTypes = field(default_factory=dict)
    has_bucket: Callable[[str], bool] = lambda _name: True
    surface: Surface | None = None


def faults_of(job: Message, here: Surroundings) -> list[str]:
    """One sentence for each fault, with its path; none for an acceptable CustomJob."""
    return common_faults(job, "job_spec", here)


def common_faults(job: Message, spec: str, here: Surroundings) -> list[str]:
    """The faults in the name, the labels, the key and the CustomJobSpec (the field `spec`) of any job."""
    return [
        *(here.surface.body_faults(job.DESCRIPTOR.name, MessageToDict(job)) if here.surface else ()),
        *_name_faults(job.display_name),
        *_label_faults(job.labels),
        *_key_faults(job.encryption_spec.kms_key_name, here.location),
        *_spec_faults(getattr(job, spec), spec, here),
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


def _key_faults(name: str, location: str) -> Iterator[str]:
    # Source of both: the comments of google.cloud.aiplatform.v1.EncryptionSpec.
    key = _KEY.fullmatch(name)
    if name and key is None:
        yield (
            "encryption_spec.kms_key_name: expected projects/P/locations/L/keyRings/R/cryptoKeys/K, "
            f"found {name!r}."
        )
    elif key and location and key["location"] != location:
        yield f"encryption_spec.kms_key_name: the key must be in the job's region, {location}, found {name!r}."


def _is_letter(character: str) -> bool:
    # Letters without case, as in Arabic or Chinese, are allowed; uppercase and title case are not.
    return unicodedata.category(character) in {"Ll", "Lo", "Lm"}


def _is_label(text: str) -> bool:
    # Combining marks belong to international letters.
    return len(text) <= MAX_LABEL and all(
        character in "_-" or _is_letter(character) or unicodedata.category(character) in {"Nd", "Mn", "Mc"}
        for character in text
    )


def _spec_faults(spec: Message, at: str, here: Surroundings) -> Iterator[str]:
    pools = spec.worker_pool_specs
    if not pools:
        yield f"{at}.worker_pool_specs: at least one worker pool is required."
    if len(pools) > MAX_POOLS:
        yield f"{at}.worker_pool_specs: at most {MAX_POOLS} pools (chief, workers, parameter servers, evaluators), found {len(pools)}."
    for number, pool in enumerate(pools):
        if number == 0 or pool.ByteSize():
            yield from _pool_faults(
                pool, f"{at}.worker_pool_specs[{number}]", here.machines, is_chief=number == 0
            )
    arguments = sum(len(text) for pool in pools for text in _arguments(pool))
    if arguments > MAX_ARGUMENTS:
        yield f"{at}: the arguments of all pools have at most {MAX_ARGUMENTS} characters in total, found {arguments}."
    yield from _scheduling_faults(spec.scheduling, f"{at}.scheduling")
    if spec.HasField("base_output_directory"):
        yield from _output_faults(
            spec.base_output_directory.output_uri_prefix,
            f"{at}.base_output_directory.output_uri_prefix",
            here,
        )
    if spec.service_account and not _ACCOUNT.fullmatch(spec.service_account):
        yield (
            f"{at}.service_account: expected NAME@PROJECT.iam.gserviceaccount.com, found {spec.service_account!r}."
        )
    if spec.network and not _NETWORK.fullmatch(spec.network):
        yield f"{at}.network: expected projects/NUMBER/global/networks/NAME, found {spec.network!r}."
    if spec.tensorboard and not spec.service_account:
        yield f"{at}.tensorboard: needs {at}.service_account as well."


def _output_faults(prefix: str, path: str, here: Surroundings) -> Iterator[str]:
    bucket = prefix.removeprefix("gs://").partition("/")[0]
    if not prefix.startswith("gs://") or not bucket:
        yield f"{path}: expected gs://BUCKET/PATH, found {prefix!r}."
    elif not here.has_bucket(bucket):
        yield f"{path}: the bucket {bucket!r} does not exist; create it first."


def _pool_faults(pool: Message, path: str, machines: MachineTypes, *, is_chief: bool) -> Iterator[str]:
    if is_chief and pool.replica_count != 1:
        yield f"{path}.replica_count: the first pool is the chief and has exactly 1 replica, found {pool.replica_count}."
    if not is_chief and pool.replica_count < 1:
        yield f"{path}.replica_count: at least 1, found {pool.replica_count}; leave the pool empty to skip it."
    yield from machine_faults(pool.machine_spec, f"{path}.machine_spec", machines)
    yield from disk_faults(pool.disk_spec, f"{path}.disk_spec")
    match pool.WhichOneof("task"):
        case "container_spec":
            yield from _env_faults(pool.container_spec.env, f"{path}.container_spec.env")
            if not pool.container_spec.image_uri:
                yield f"{path}.container_spec.image_uri: required."
        case "python_package_spec":
            yield from _package_faults(pool.python_package_spec, f"{path}.python_package_spec")
        case _:
            yield f"{path}: one of container_spec and python_package_spec is required."


def _package_faults(package: Message, path: str) -> Iterator[str]:
    yield from _env_faults(package.env, f"{path}.env")
    for name in ("executor_image_uri", "python_module"):
        if not getattr(package, name):
            yield f"{path}.{name}: required."
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
    for name in ("timeout", "max_wait_duration"):
        if getattr(scheduling, name).ToTimedelta().total_seconds() < 0:
            yield f"{path}.{name}: must not be negative."
    if (
        scheduling.strategy == Scheduling.Strategy.FLEX_START
        and scheduling.timeout.ToTimedelta().total_seconds() > MAX_TIMEOUT_S
    ):
        yield f"{path}.timeout: at most {MAX_TIMEOUT_S}s with FLEX_START."


def _arguments(pool: Message) -> list[str]:
    return [*pool.container_spec.args, *pool.container_spec.command, *pool.python_package_spec.args]
