"""Faults of a request that asks for what the policy does not give."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches

from trainmaster.orchestrator.core.documents.faults import (
    FOUND_MAX_CHARS,
    Fault,
    Suggestions,
    hint,
    listed,
    nearest,
    plain,
)
from trainmaster.orchestrator.core.documents.values import (
    Path,
    at,
    is_true,
    list_at,
    mapping_at,
    text_at,
    whole_at,
)
from trainmaster.orchestrator.core.job_names import context_name
from trainmaster.orchestrator.core.policy.policy import Machines, Policy, among, has_digest, repository, under
from trainmaster.orchestrator.core.requests.checks.tuning import iter_parameters
from trainmaster.orchestrator.core.requests.draft import EXECUTOR_IMAGE, SCRIPT, Draft
from trainmaster.orchestrator.core.requests.gpus import accelerator_type
from trainmaster.orchestrator.core.requests.matrix import MATRIX

_CHIPS = "remove it: tpu_topology already sets the number of chips"


def policy_faults(draft: Draft) -> list[Fault]:
    """Every place where the request asks for what the policy does not give, sorted by path.

    Without a policy everything is given.
    """
    policy = draft.policy
    if policy is None:
        return []
    return sorted(fault for check in _CHECKS for fault in check(policy, draft))


def _policy_fault(path: Path, found: object, allowed: str | Sequence[object], repair: str = "") -> Fault:
    """The fault of what the policy does not allow; `allowed` are its patterns, or how much it allows."""
    text = allowed if isinstance(allowed, str) else listed(allowed) or "none"
    return Fault(at=path, problem="the policy does not allow it", value=found, allowed=text, repair=repair)


def _region(policy: Policy, draft: Draft) -> Iterator[Fault]:
    if not among(draft.region, policy.regions):
        yield Fault(
            at=("region",) if text_at(draft.document, "region") is not None else (),
            problem="the policy does not allow this region",
            value=draft.region,
            among=policy.regions,
            repair=nearest(draft.region, policy.regions),
        )


def _images(policy: Policy, draft: Draft) -> Iterator[Fault]:
    for path, image in draft.images.items():
        is_executor = path[-len(EXECUTOR_IMAGE) :] == EXECUTOR_IMAGE
        executors = policy.images if policy.executor_images is None else policy.executor_images
        patterns = executors if is_executor else policy.images
        # A malformed reference has no repository: the host that a pattern seems to name may not be the one that is asked.
        if not repository(image) or not among(repository(image), patterns):
            repair = "install the packages in your own image and use that" if is_executor else ""
            yield _policy_fault(path, image, patterns, repair)
        elif among(repository(image), policy.require_digest) and not has_digest(image):
            yield Fault(
                at=path,
                problem="the policy requires a digest for this image, because a tag can be moved",
                value=image,
                allowed=f"{plain(repository(image))}@sha256:…",
                repair="`gcloud artifacts docker images describe IMAGE` prints the digest that the tag points to now",
            )


def _packages(policy: Policy, draft: Draft) -> Iterator[Fault]:
    for here, place in draft.places.items():
        for index, uri in enumerate(list_at(place, "python_package", "uris")):
            if isinstance(uri, str) and not under(uri, policy.package_prefixes):
                repair = "copy the package there, or ask for its bucket to be added to package_prefixes in the policy"
                path = (*here, "python_package", "uris", index)
                yield _policy_fault(path, uri, policy.package_prefixes, repair)


def _scripts(policy: Policy, draft: Draft) -> Iterator[Fault]:
    archive = text_at(draft.document, SCRIPT, "archive")
    if archive is not None and not under(archive, policy.script_prefixes):
        repair = "submit the script with `trainmaster submit`, which uploads it to the right place"
        yield _policy_fault((SCRIPT, "archive"), archive, policy.script_prefixes, repair)


_MACHINE_LIKENESS = 0.75
"""Less alike than that, the suggestion would be an unrelated machine, which may cost a hundred times as much."""


def _machines(policy: Policy, draft: Draft) -> Iterator[Fault]:
    """Every role's machine that the policy does not have, and whatever its machine does not take."""
    for role, pool in draft.roles.items():
        here, machine, row = ("cluster", role), text_at(pool, "machine"), draft.machines.get(role)
        if machine is not None and row is None:
            every = [name for machines in policy.machines for name in machines.types]
            near = get_close_matches(machine[:FOUND_MAX_CHARS], every, n=1, cutoff=_MACHINE_LIKENESS)
            yield _policy_fault((*here, "machine"), machine, every, hint("".join(near)))
        if machine is not None and row is not None:
            yield from _accelerator(here, machine, row, pool)
            yield from _topology((*here, "tpu_topology"), machine, row, pool)


def _accelerator(here: Path, machine: str, row: Machines, pool: Mapping[str, object]) -> Iterator[Fault]:
    accelerator, count = text_at(pool, "accelerator", "type"), whole_at(pool, "accelerator", "count")
    taken = row.accelerators or {}
    kinds = [f"{name} ({listed(counts)})" for name, counts in taken.items()]
    if accelerator is None:
        if row.accelerator_required and at(pool, "accelerator") is None:
            problem = f"missing: {machine} requires accelerators"
            yield Fault(at=(*here, "accelerator"), problem=problem, among=kinds)
    elif accelerator not in taken:
        near = accelerator_type(accelerator, [row])
        near = near or Suggestions().find(accelerator[:FOUND_MAX_CHARS], list(taken))
        yield Fault(
            at=(*here, "accelerator", "type"),
            problem=f"{machine} does not support it",
            value=accelerator,
            among=kinds,
            repair=_CHIPS if row.tpu_topologies else hint(near),
        )
    elif count is not None and count not in taken[accelerator]:
        path, problem = (*here, "accelerator", "count"), f"{machine} does not support this many {accelerator}"
        yield Fault(at=path, problem=problem, value=count, among=taken[accelerator])


def _topology(path: Path, machine: str, row: Machines, pool: Mapping[str, object]) -> Iterator[Fault]:
    topology = text_at(pool, "tpu_topology")
    if topology is None:
        if row.tpu_topologies and at(pool, "tpu_topology") is None:
            problem = f"missing: {machine} has TPUs, and this sets how many"
            yield Fault(at=path, problem=problem, among=row.tpu_topologies)
    elif topology not in row.tpu_topologies:
        problem, repair = f"{machine} does not support it", "" if row.tpu_topologies else "remove it"
        yield Fault(at=path, problem=problem, value=topology, among=row.tpu_topologies, repair=repair)


def _sizes(policy: Policy, draft: Draft) -> Iterator[Fault]:
    """How many replicas, for how long, how soon, how often."""
    counts = {role: whole_at(pool, "count") or 1 for role, pool in draft.roles.items() if role != "chief"}
    total = 1 + sum(counts.values())
    if counts and total > policy.max_replicas:
        most = max(counts, key=lambda role: counts[role])
        yield _policy_fault(
            ("cluster", most, "count"),
            counts[most],
            f"at most {policy.max_replicas} replicas in total, including the chief",
            f"the cluster has {total}; remove {total - policy.max_replicas}",
        )
    for path, highest in (
        (("scheduling", "timeout_s"), policy.max_timeout_s),
        (("priority",), policy.admission.max_priority),
        (("scheduling", "retries"), policy.admission.max_retries),
    ):
        value = whole_at(draft.document, *path)
        if value is not None and highest is not None and value > highest:
            yield _policy_fault(path, value, f"at most {highest}")


def _labels(policy: Policy, draft: Draft) -> Iterator[Fault]:
    for name in policy.admission.required_labels:
        if mapping_at(draft.document, "labels").get(name) in (None, ""):
            yield Fault(at=("labels", name), problem="missing: the policy requires a value of this label")


def _resources(policy: Policy, draft: Draft) -> Iterator[Fault]:
    ranges = enumerate(list_at(draft.document, "reserved_ip_ranges"))
    named: dict[Path, tuple[object, str]] = {
        path: (at(draft.document, *path), key)
        for path, key in (
            (("service_account",), "service_accounts"),
            (("network",), "networks"),
            (("psc_interface_config", "network_attachment"), "network_attachments"),
            (("tensorboard",), "tensorboards"),
            (("experiment",), "experiments"),
            (("encryption_key",), "encryption_keys"),
            (("persistent_resource",), "persistent_resources"),
            (("protected_artifact_location_id",), "regions"),
        )
    }
    experiment = named[("experiment",)][0]
    if isinstance(experiment, str) and "/" not in experiment:
        named[("experiment",)] = (context_name(policy.project, draft.region, experiment), "experiments")
    named |= {("reserved_ip_ranges", index): (name, "reserved_ip_ranges") for index, name in ranges}
    named |= _reservations(draft)
    run = draft.document.get("experiment_run")
    if isinstance(run, str) and "/" in run:  # otherwise it is an id in the experiment
        named[("experiment_run",)] = (run, "experiments")
    for path, (value, key) in named.items():
        patterns: tuple[str, ...] = getattr(policy, key)
        if key == "persistent_resources":
            patterns += tuple(pool.id for pool in policy.pools)
        if isinstance(value, str) and not among(value, patterns):
            yield _policy_fault(path, value, patterns, _named_otherwise(value, key))
    prefix = text_at(draft.document, "output", "prefix_uri")
    if prefix is not None and not under(prefix, policy.output_prefixes):
        yield _policy_fault(("output", "prefix_uri"), prefix, policy.output_prefixes)
    model_uri = text_at(draft.document, "model_uri")
    if model_uri is not None and not under(model_uri, policy.model_prefixes):
        repair = "ask for its bucket to be added to output_prefixes in the policy, or save to AIP_MODEL_DIR"
        yield _policy_fault(("model_uri",), model_uri, policy.model_prefixes, repair)


def _reservations(draft: Draft) -> Iterator[tuple[Path, tuple[object, str]]]:
    """The reservations that roles name, and the word for any, for which another team may pay."""
    for role, pool in draft.roles.items():
        here, affinity = ("cluster", role, "reservation_affinity"), mapping_at(pool, "reservation_affinity")
        kind = affinity.get("reservation_affinity_type")
        if kind == "ANY_RESERVATION":
            yield (*here, "reservation_affinity_type"), (kind, "reservations")
        named = list_at(affinity, "values") if kind not in ("ANY_RESERVATION", "NO_RESERVATION") else ()
        for index, name in enumerate(named):
            yield (*here, "values", index), (name, "reservations")


def _named_otherwise(name: str, key: str) -> str:
    if key in ("networks", "network_attachments", "reservations"):
        return f"ask for it to be added to {key} in the policy"
    is_numbered = name.startswith("projects/") and name.split("/")[1].isdigit()
    return "name the project by its id, not by its number" if is_numbered else ""


def _nfs(policy: Policy, draft: Draft) -> Iterator[Fault]:
    for role, pool in draft.roles.items():
        for key, address in (("nfs_mounts", "server"), ("lustre_mounts", "instance_ip")):
            for index, mount in enumerate(list_at(pool, key)):
                server = text_at(mount, address)
                if server is not None and not policy.serves_nfs(server):
                    networks = listed(policy.nfs_servers)
                    path = ("cluster", role, key, index, address)
                    yield _policy_fault(path, server, f"an IP address in {networks}" if networks else "none")


def _access(policy: Policy, draft: Draft) -> Iterator[Fault]:
    allowed = {"web_access": policy.web_access, "dashboard_access": policy.dashboard_access}
    for key, is_allowed in allowed.items():
        if is_true(draft.document, key) and not is_allowed:
            repair = f"remove it, or ask for {key} to be allowed in the policy"
            yield _policy_fault((key,), True, "false", repair)


def _env(policy: Policy, draft: Draft) -> Iterator[Fault]:
    for here, place in draft.places.items():
        for name in sorted(map(str, mapping_at(place, "env"))):
            row = next((row for row in policy.env.refused if row.matches(name)), None)
            if row is not None:
                why = f": {row.why}" if row.why else ""
                others = ", and those of env.refused in the policy" if len(policy.env.refused) > 1 else ""
                yield Fault(
                    at=(*here, "env", name),
                    problem=f"the policy does not allow this name{why}",
                    value=name,
                    allowed=f"any name but {listed(row.names)}{others}",
                    repair=row.instead,
                )


def _flags(_: Policy, draft: Draft) -> Iterator[Fault]:
    """Every replica of a trial, or of a matrix's run, is given flags: what the chief's image does not take fails it."""
    row, suggestions = draft.flags_of(draft.running["chief"]), Suggestions()
    given = [(path, name, "trial") for path, name, _parameter in iter_parameters(draft.tuning)]
    given += [((MATRIX, name), name, "run") for name in mapping_at(draft.document, MATRIX)]
    for path, name, failing in given if row is not None else ():
        if row is not None and name not in row.flags:
            yield Fault(
                at=path,
                problem=f"the image does not accept this flag, so every {failing} would fail",
                value=f"--{name}",
                among=row.flags,
                repair=nearest(name, row.flags, suggestions),
            )


_CHECKS: tuple[Callable[[Policy, Draft], Iterator[Fault]], ...] = (
    _region,
    _images,
    _packages,
    _scripts,
    _machines,
    _sizes,
    _labels,
    _resources,
    _nfs,
    _access,
    _env,
    _flags,
)
