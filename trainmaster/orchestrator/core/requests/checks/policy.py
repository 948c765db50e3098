"""Where a request asks for what the policy does not give.

Checks read the raw document and pass over what has the wrong type: the schema reports that, in the
same report.
"""

from collections.abc import Callable, Iterator

from trainmaster.orchestrator.core.documents.faults import Fault, fault_at, listed, nearest, plain
from trainmaster.orchestrator.core.documents.unvalidated import (
    Path,
    is_true,
    list_at,
    mapping_at,
    text_at,
    whole_at,
)
from trainmaster.orchestrator.core.policy.policy import Policy, among, has_digest, repository, under
from trainmaster.orchestrator.core.requests.checks.machines import machine_faults
from trainmaster.orchestrator.core.requests.checks.tuning import parameters_in
from trainmaster.orchestrator.core.requests.programs import (
    EXECUTOR_IMAGE,
    images_in,
    places_in,
    roles_in,
    running,
)


def policy_faults(policy: Policy, document: object, region: str) -> list[Fault]:
    """Every place where the request asks for what the policy does not give, sorted by path.

    `region` is where it would run.
    """
    faults = [fault for check in _CHECKS for fault in check(policy, document)]
    return sorted([*faults, *_region(policy, document, region)])


def _region(policy: Policy, document: object, region: str) -> Iterator[Fault]:
    if not among(region, policy.regions):
        yield fault_at(
            ("region",) if text_at(document, "region") is not None else (),
            "no region of the policy",
            found=region,
            allowed=listed(policy.regions),
            repair=nearest(region, policy.regions),
        )


def _refused(path: Path, found: object, allowed: str, repair: str = "") -> Fault:
    return fault_at(path, "the policy does not allow it", found=found, allowed=allowed, repair=repair)


def _images(policy: Policy, document: object) -> Iterator[Fault]:
    for path, image in images_in(document):
        is_executor = path[-len(EXECUTOR_IMAGE) :] == EXECUTOR_IMAGE
        executors = policy.images if policy.executor_images is None else policy.executor_images
        patterns = executors if is_executor else policy.images
        # A path component `..` would let an image leave the repository that a pattern names.
        if ".." in image.split("/") or not among(repository(image), patterns):
            repair = "install the packages in an image of your own, and name that" if is_executor else ""
            yield _refused(path, image, listed(patterns) or "none", repair)
        elif among(repository(image), policy.require_digest) and not has_digest(image):
            yield fault_at(
                path,
                "the policy wants this image named by its digest, for a tag can be moved to another",
                found=image,
                allowed=f"{plain(repository(image))}@sha256:…",
                repair="`gcloud artifacts docker images describe IMAGE` tells the digest of what the tag names now",
            )


def _packages(policy: Policy, document: object) -> Iterator[Fault]:
    for here, place in places_in(document):
        for index, uri in enumerate(list_at(place, "python_package", "uris")):
            if isinstance(uri, str) and not under(uri, policy.package_prefixes):
                repair = "copy the package there, or have its bucket added to package_prefixes of the policy"
                path: Path = (*here, "python_package", "uris", index)
                yield _refused(path, uri, listed(policy.package_prefixes) or "none", repair)


def _replicas(policy: Policy, document: object) -> Iterator[Fault]:
    counts = {role: whole_at(pool, "count") or 1 for role, pool in roles_in(document) if role != "chief"}
    total = 1 + sum(counts.values())
    if counts and total > policy.max_replicas:
        most = max(counts, key=lambda role: counts[role])
        yield _refused(
            ("cluster", most, "count"),
            counts[most],
            f"at most {policy.max_replicas} replicas in all, the chief among them",
            f"the cluster has {total}; take away {total - policy.max_replicas}",
        )


def _timeout(policy: Policy, document: object) -> Iterator[Fault]:
    timeout_s = whole_at(document, "scheduling", "timeout_s")
    if timeout_s is not None and timeout_s > policy.max_timeout_s:
        yield _refused(("scheduling", "timeout_s"), timeout_s, f"at most {policy.max_timeout_s}")


def _priority(policy: Policy, document: object) -> Iterator[Fault]:
    priority, highest = whole_at(document, "priority"), policy.admission.max_priority
    if priority is not None and highest is not None and priority > highest:
        yield _refused(("priority",), priority, f"at most {highest}")


def _labels(policy: Policy, document: object) -> Iterator[Fault]:
    for name in policy.admission.required_labels:
        if name not in mapping_at(document, "labels"):
            yield fault_at(("labels", name), "missing: the policy wants this label of every request")


def _resources(policy: Policy, document: object) -> Iterator[Fault]:
    for key, patterns in (
        ("service_account", policy.service_accounts),
        ("network", policy.networks),
        ("encryption_key", policy.encryption_keys),
        ("persistent_resource", policy.persistent_resources),
    ):
        value = text_at(document, key)
        if value is not None and not among(value, patterns):
            yield _refused((key,), value, listed(patterns) or "none")


def _ip_ranges(policy: Policy, document: object) -> Iterator[Fault]:
    for index, name in enumerate(list_at(document, "reserved_ip_ranges")):
        if isinstance(name, str) and not among(name, policy.reserved_ip_ranges):
            yield _refused(("reserved_ip_ranges", index), name, listed(policy.reserved_ip_ranges) or "none")


def _nfs(policy: Policy, document: object) -> Iterator[Fault]:
    for role, pool in roles_in(document):
        for index, mount in enumerate(list_at(pool, "nfs_mounts")):
            server = text_at(mount, "server")
            if server is not None and not policy.serves_nfs(server):
                path: Path = ("cluster", role, "nfs_mounts", index, "server")
                networks = listed(policy.nfs_servers)
                yield _refused(path, server, f"an IP address in {networks}" if networks else "none")


def _access(policy: Policy, document: object) -> Iterator[Fault]:
    for key, is_allowed in (
        ("web_access", policy.web_access),
        ("dashboard_access", policy.dashboard_access),
    ):
        if is_true(document, key) and not is_allowed:
            yield _refused((key,), True, "false", f"leave it out, or have {key} allowed in the policy")


def _output(policy: Policy, document: object) -> Iterator[Fault]:
    prefix = text_at(document, "output", "prefix_uri")
    if prefix is not None and not under(prefix, policy.output_prefixes):
        yield _refused(("output", "prefix_uri"), prefix, listed(policy.output_prefixes) or "none")


def _env(policy: Policy, document: object) -> Iterator[Fault]:
    for here, place in places_in(document):
        for name in sorted(map(str, mapping_at(place, "env"))):
            if among(name, policy.env.refused):
                yield fault_at(
                    (*here, "env", name),
                    "the policy keeps this name for the service",
                    found=name,
                    allowed=f"any name but {listed(policy.env.refused)}",
                )


def _flags(policy: Policy, document: object) -> Iterator[Fault]:
    """Every replica of a trial is given its parameters as flags: what the chief's image does not take fails it."""
    image, tuning = running(document, "chief").image, mapping_at(document, "tuning")
    row = policy.flags_of(image) if image is not None else None
    for path, name, _ in parameters_in(tuning) if row is not None else ():
        if row is not None and name not in row.flags:
            yield fault_at(
                path,
                "the image takes no such flag, so every trial would fail",
                found=f"--{name}",
                allowed=listed(row.flags, most=20),
                repair=nearest(name, row.flags),
            )


_CHECKS: tuple[Callable[[Policy, object], Iterator[Fault]], ...] = (
    _images,
    _packages,
    machine_faults,
    _replicas,
    _timeout,
    _priority,
    _labels,
    _resources,
    _ip_ranges,
    _nfs,
    _access,
    _output,
    _env,
    _flags,
)
