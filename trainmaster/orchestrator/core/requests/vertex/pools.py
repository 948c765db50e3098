"""Worker pools as the API spells them, in the project's dialect: roles, their machines, disks, shares and programs."""

from collections.abc import Mapping

from trainmaster.orchestrator.core.documents.faults import listed
from trainmaster.orchestrator.core.documents.values import Path
from trainmaster.orchestrator.core.requests.draft import ROLES
from trainmaster.orchestrator.core.requests.fields import Fields, copy_keys, inverse, number
from trainmaster.orchestrator.core.requests.gpus import NAMES
from trainmaster.orchestrator.core.requests.own_document import OwnDocument
from trainmaster.orchestrator.core.requests.placeholders import literal
from trainmaster.orchestrator.core.requests.spec import MACHINE_SETTINGS, MOUNTS, in_camel_case
from trainmaster.orchestrator.core.requests.submission import DISK, REPLICA_ENVIRONMENT

NO_ACCELERATOR = "ACCELERATOR_TYPE_UNSPECIFIED"
Variable = tuple[Path, object]
"""The written path of a variable's value, and the value."""
_PACKAGE_KEYS = {"executorImageUri": "executor_image", "packageUris": "uris", "pythonModule": "module"}
_PROGRAMS = ("containerSpec", "pythonPackageSpec")
_ALLOWED = " or ".join(_PROGRAMS)
_PLACES = listed(f"{index} {role.replace('_', ' ')}" for index, role in enumerate(ROLES))


def write_pools(spec: Fields, own: OwnDocument) -> None:
    """Write a role for each pool; an empty one keeps the places of those after it.

    The chief's program is the request's own, whose flags and image the checks read.

    Source: https://cloud.google.com/vertex-ai/docs/training/distributed-training
    """
    source, translation = spec.at("workerPoolSpecs"), spec.translation
    cluster = own.inner("cluster", source)
    first = spec.member_at("workerPoolSpecs", 0)
    translation.place(("image",), first)
    for index, role in enumerate(ROLES):
        translation.place(("cluster", role), spec.member_at("workerPoolSpecs", index))
    environments: list[Variable] = []
    pools = list(spec.items("workerPoolSpecs"))
    for index, pool in enumerate(pools):
        _write_pool(pool, index, own, cluster, environments)
    if "chief" not in cluster.content and not (pools and pools[0].value and pools[0].kind_fault):
        translation.refuse(first, "missing: every job needs a chief", allowed=_PLACES)
    _write_replica_environment(environments, cluster)


def _write_pool(
    pool: Fields, index: int, own: OwnDocument, cluster: OwnDocument, environments: list[Variable]
) -> None:
    """`environments` gets the variables of the pool that name a replica environment, which all pools share."""
    if index >= len(ROLES):
        problem = "no role is left for this pool"
        pool.translation.refuse(pool.path, problem, value=pool.value, allowed=_PLACES)
    elif pool.kind_fault and pool.value is not None:
        pool.translation.refuse(pool.path, "expected a mapping", value=pool.value)
    if (
        index >= len(ROLES)
        or not isinstance(pool.value, Mapping)
        or not any(map(number, pool.value.values()))
    ):
        return
    role = cluster.inner(ROLES[index], pool.path)
    _write_count(pool, role)
    _write_machine(pool.fields("machineSpec"), role)
    write_disk(pool, "diskSpec", role)
    copy_keys(pool, role, inverse(in_camel_case(MOUNTS)))
    _write_program(pool, own if index == 0 else role, environments)


def _write_count(pool: Fields, role: OwnDocument) -> None:
    count = pool.number("replicaCount")
    if role.path[-1] != "chief":
        role.put("count", 1 if count is None else count, pool.at("replicaCount"))
    elif count is not None and (count != 1 or isinstance(count, bool)):
        problem, repair = "a job has exactly one chief", "put the others in pool 1, the workers"
        pool.refuse("replicaCount", problem, value=count, allowed="1 in pool 0", repair=repair)


def _write_machine(machine: Fields, role: OwnDocument) -> None:
    copy_keys(machine, role, {"machineType": "machine"})
    accelerator = role.inner("accelerator", machine.at("acceleratorType"), there=False)
    kind = machine.get("acceleratorType")
    if isinstance(kind, int):
        machine.refuse_choice("acceleratorType", tuple(NAMES.values()))
    accelerator.put("type", None if kind == NO_ACCELERATOR else kind, machine.at("acceleratorType"))
    count = machine.number("acceleratorCount")
    unsaid = count == 0 and "type" not in accelerator.content  # the API's way to say that there are none
    accelerator.put("count", None if unsaid else count, machine.at("acceleratorCount"))
    if accelerator.content:
        role.content["accelerator"] = accelerator.content
    copy_keys(machine, role, inverse(in_camel_case(MACHINE_SETTINGS)))


def write_disk(pool: Fields, key: str, role: OwnDocument) -> None:
    """Write the boot disk that the pool has under the key."""
    disk = pool.fields(key)
    copy_keys(disk, role.inner("disk", disk.path, there=pool.has(key)), inverse(DISK), Fields.number)


def _write_replica_environment(environments: list[Variable], cluster: OwnDocument) -> None:
    if not environments:
        return
    path, value = environments[0]
    cluster.put("replica_environment", value, path)
    values = [other for _, other in environments]
    if len(values) != len(cluster.content.keys() & set(ROLES)) or any(other != value for other in values):
        problem = "all replicas of a job share one environment"
        repair = "give the variable the same value in every pool, or remove it"
        cluster.translation.refuse(path, problem, value=values, repair=repair)


def _write_program(pool: Fields, own: OwnDocument, environments: list[Variable]) -> None:
    """Each pool names its own program, so that no role takes anything from another."""
    container, package = (pool.fields(key) for key in _PROGRAMS)
    both = pool.present(_PROGRAMS)
    if len(both) > 1:
        problem, repair = "a pool runs a container or Python packages, not both", "remove one of the two"
        pool.translation.refuse(pool.path, problem, value=both, allowed=_ALLOWED, repair=repair)
    if pool.has("containerSpec"):
        if not container.has("imageUri") and not container.kind_fault:
            # Without an image the role would inherit the chief's.
            container.refuse("imageUri", "missing", allowed="a container image")
        copy_keys(container, own, {"imageUri": "image", "command": "command"})
        _write_arguments(container, own, environments)
    elif pool.has("pythonPackageSpec"):
        copy_keys(package, own.inner("python_package", package.path), _PACKAGE_KEYS)
        _write_arguments(package, own, environments)
    else:
        own.translation.place((*own.path, "image"), pool.path)
        pool.translation.refuse(pool.path, "the pool has nothing to run", allowed=_ALLOWED)


def _write_arguments(program: Fields, own: OwnDocument, environments: list[Variable]) -> None:
    copy_keys(program, own, {"args": "args"}, lambda fields, name: literal(fields.get(name)))
    env = own.inner("env", program.at("env"), there=False)
    entries = list(program.mappings("env", "expected a mapping with name and value"))
    if len(entries) == 1 and entries[0].path == program.at("env") and not entries[0].has("name"):
        repair = "write each as '- name: NAME' and below it 'value: VALUE'"
        program.refuse("env", "expected a list of names and values", repair=repair)
        env.content |= entries.pop().pass_over()
    for entry in entries:
        _write_variable(entry, env, environments)
    if env.content:
        own.content["env"] = env.content


def _write_variable(entry: Fields, env: OwnDocument, environments: list[Variable]) -> None:
    """Every other name of ours than that of the replica environment stays for the policy to refuse."""
    name, value = entry.get("name"), entry.get("value")
    if name == REPLICA_ENVIRONMENT:
        environments.append((entry.at("value"), value))
    elif not isinstance(name, str):
        entry.refuse("name", "expected a name", value=name)
    elif name in env.content:
        entry.refuse("name", "duplicate variable", repair="keep one of the two")
    else:
        # Of a value that is a string nothing can be wrong but the name.
        wrong = "name" if isinstance(value, str) else "value"
        env.put(name, "" if value is None else value, entry.at(wrong))
