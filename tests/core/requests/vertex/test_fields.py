"""Every field of the API's jobs, in v1 and v1beta1, is read, ignored or refused with a reason: none is forgotten."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.judges.discovery import api
from trainmaster.orchestrator.core.requests.fields import REPEATED
from trainmaster.orchestrator.core.requests.reading import dialect_of

Path = tuple[str | int, ...]
FOREIGN = "this key is not allowed in a request"
REASON = "only the API's v1beta1 has this key, and "
REFUSED = {
    "minGpuDriverVersion", "multihostGpuNodeCount", "convexStopConfig", "transferLearningConfig",
}  # fmt: skip
"""Only v1beta1 has them, and jobs are submitted through v1."""
NEEDED: Mapping[str, Mapping[str, object]] = {
    "CustomJob": {"displayName": "x", "jobSpec": {}},
    "HyperparameterTuningJob": {"displayName": "x", "studySpec": {}, "trialJobSpec": {}},
    "StudySpecParameterSpec": {"parameterId": "p"},
}
"""Without these keys nothing else of the mapping is read."""


def snake_case(name: str) -> str:
    return re.sub("([A-Z])", r"_\1", name).lower()


def mappings_of(
    version: str, message: str, path: Path = (), within: Path = ()
) -> Iterator[tuple[Path, Path, set[str]]]:
    """Each mapping inside the message: its path, the messages around it, and the fields that a user may write."""
    prefix = f"GoogleCloudAiplatform{version.capitalize()}"
    properties = api(f"aiplatform.{version}").document["schemas"][prefix + message]["properties"]
    written = {name: field for name, field in properties.items() if not field.get("readOnly")}
    around = (*within, message)
    yield path, around, set(written)
    for name, field in written.items():
        inner = field.get("items", field).get("$ref", "").removeprefix(prefix)
        if inner and inner not in around and name not in REFUSED:
            yield from mappings_of(
                version, inner, (*path, name, 0) if "items" in field else (*path, name), around
            )


MAPPINGS = {
    f"{version}-{'.'.join(map(str, path)) or around[0]}": (path, around, names)
    for version in ("v1", "v1beta1")
    for message in ("CustomJob", "HyperparameterTuningJob")
    for path, around, names in mappings_of(version, message)
}


def document_with(path: Path, around: Path, keys: Mapping[str, object]) -> dict[str, Any]:
    """The smallest job that has a mapping with these keys at the path."""
    messages = list(around)
    content: Any = {**NEEDED.get(str(messages.pop()), {}), **keys}
    for part in reversed(path):
        content = [content] if part == 0 else {**NEEDED.get(str(messages.pop()), {}), part: content}
    return dict(content)


def problems(document: Mapping[str, Any]) -> dict[str, str]:
    """Unsupported keys, by the problem reported."""
    faults = dialect_of(document).in_own(document, "x").faults
    return {
        fault.path.rpartition(".")[2]: fault.problem
        for fault in faults
        if fault.problem == FOREIGN or REASON in fault.problem
    }


@pytest.mark.parametrize("spelt", [str, snake_case], ids=["camelCase", "snake_case"])
@pytest.mark.parametrize(("path", "around", "names"), MAPPINGS.values(), ids=MAPPINGS)
def test_every_field_of_the_api_is_known(path: Path, around: Path, names: set[str], spelt: Any) -> None:
    document = document_with(path, around, {spelt(name): "junk" for name in (*names, "noSuchKey")})
    found = problems(document)
    assert found.pop(spelt("noSuchKey")) == FOREIGN, "the mapping was not read"
    assert set(found) == {spelt(name) for name in names & REFUSED}
    assert all(REASON in problem for problem in found.values())


@pytest.mark.parametrize("key", ["retries", "maxRetries", "retryOn", "start_within_s"])
def test_a_key_of_our_own_scheduling_is_not_taken_for_another_of_the_api(key: str) -> None:
    document = {"workerPoolSpecs": [], "scheduling": {key: 1, "disableRetries": False}}
    (fault,) = (one for one in dialect_of(document).in_own(document, "x").faults if one.path.endswith(key))
    assert "our own dialect has scheduling.retries, retry_on and start_within_s" in str(fault)
    assert fault.repair == "remove it"


def test_every_list_of_a_job_may_be_its_only_member() -> None:
    schemas = api("aiplatform.v1").document["schemas"]
    messages = {message for _, around, _ in MAPPINGS.values() for message in around}
    found = (
        schemas.get(f"GoogleCloudAiplatformV1{message}", {}).get("properties", {}) for message in messages
    )
    lists = {name for of in found for name, field in of.items() if field.get("type") == "array"}
    assert lists - {"trials"} <= REPEATED
    assert REPEATED - lists == {
        "categoricalValues",
        "containerArgs",
        "containerCommand",
        "discreteValues",
        "params",
    }


def test_the_mappings_are_all_those_inside_a_job() -> None:
    messages = {message for _, around, _ in MAPPINGS.values() for message in around}
    assert {
        "WorkerPoolSpec",
        "MachineSpec",
        "DiskSpec",
        "Scheduling",
        "StudySpec",
        "StudyTimeConstraint",
    } <= messages
    assert {name for _, _, names in MAPPINGS.values() for name in names} >= REFUSED
