"""Parts of a request that are of another kind than what is read there: a list where a mapping belongs.

Only what the checks read is looked at; the service judges the rest.
"""

from collections.abc import Iterator, Mapping, Sequence

from trainmaster.inspect.request.document import snake_case

MAPPINGS = frozenset(
    {
        "training_input",
        "hyperparameters",
        "master_config",
        "worker_config",
        "parameter_server_config",
        "evaluator_config",
        "study_spec",
        "job_spec",
        "trial_job_spec",
        "container_spec",
        "python_package_spec",
        "scheduling",
        "cluster",
        "chief",
        "workers",
        "parameter_servers",
        "evaluators",
        "tuning",
        "python_package",
    }
)
LISTS = frozenset(
    {"worker_pool_specs", "args", "command", "container_args", "container_command", "params", "metrics"}
)
OF_MAPPINGS = frozenset({"params", "metrics"})
USERS_OWN = frozenset({"env", "labels"})
"""Their keys are names that the user chose."""


def shape_faults(value: object, path: str = "$") -> Iterator[str]:
    """Every part of the wrong kind, with its path in the text."""
    if isinstance(value, Mapping):
        for key, found in value.items():
            here, name = f"{path}.{key}", snake_case(str(key))
            if name in USERS_OWN:
                continue
            if name in MAPPINGS and not isinstance(found, Mapping | None):
                yield _wrong(here, "a mapping", found)
            elif name in LISTS and not isinstance(found, list | None):
                yield _wrong(here, "a list", found)
            else:
                yield from shape_faults(found, here)
                if name in OF_MAPPINGS:
                    yield from _wrong_items(found, here)
                if name == "worker_pool_specs" and isinstance(found, list):
                    yield from _wrong_pools(found, here)
    elif isinstance(value, list):
        for index, found in enumerate(value):
            yield from shape_faults(found, f"{path}[{index}]")


def _wrong_items(items: object, path: str) -> Iterator[str]:
    for index, found in enumerate(items if isinstance(items, list) else ()):
        if not isinstance(found, Mapping):
            yield _wrong(f"{path}[{index}]", "a mapping", found)


def _wrong_pools(pools: Sequence[object], path: str) -> Iterator[str]:
    """The chief's pool is a mapping; a later one may be nothing, to keep its place."""
    for index, found in enumerate(pools):
        if not isinstance(found, Mapping) and (found is not None or index == 0):
            yield _wrong(f"{path}[{index}]", "a mapping", found)


def _wrong(path: str, wanted: str, found: object) -> str:
    return f"{path}: {wanted} is wanted here; found {found!r:.80}"
