"""A fault in a file for gcloud has the path of the file's text, in every role and field and either spelling."""

import copy
import functools
import json
import operator
from collections.abc import Mapping
from typing import Any

import pytest

from tests.core.fuzz.mutation import places
from tests.core.fuzz.seeds import CUSTOM, TUNING
from tests.core.parsed import answer_to
from tests.core.vertex_files import (
    IMAGE,
    Path,
    changed,
    job,
    job_spec,
    package_pool,
    plain,
    snake,
    snake_path,
    told,
)
from tests.narrowing import instance_of
from trainmaster.orchestrator.core.documents.faults import Refused, json_path
from trainmaster.orchestrator.core.requests.request import Request

POOL_FAULTS: list[tuple[Path, object]] = [
    (("machineSpec", "machineType"), "N1 standard"),
    (("machineSpec", "machineType"), None),
    (("machineSpec", "acceleratorType"), "t4"),
    (("machineSpec", "acceleratorType"), None),
    (("machineSpec", "acceleratorCount"), 0),
    (("machineSpec", "acceleratorCount"), None),
    (("machineSpec", "tpuTopology"), "big"),
    (("machineSpec", "machinType"), "n1-standard-4"),
    (("machineSpec", "reservationAffinity", "reservationAffinityType"), "SPECIFIC"),
    (("machineSpec", "reservationAffinity", "key"), None),
    (("machineSpec", "reservationAffinity", "values", 0), "r"),
    (("machineSpec", "reservationAffinity", "names"), ["r"]),
    (("machineSpec", "reservationAffinity"), "any"),
    (("machineSpec", "gpuPartitionSize"), "half"),
    (("machineSpec",), "n1-standard-4"),
    (("replicaCount",), "-1"),
    (("diskSpec", "bootDiskType"), "floppy"),
    (("diskSpec", "bootDiskSizeGb"), 1),
    (("diskSpec", "bootDiskSize"), 100),
    (("diskSpec",), ["pd-ssd"]),
    (("nfsMounts", 0, "server"), 10),
    (("nfsMounts", 0, "path"), "share"),
    (("nfsMounts", 0, "mountPoint"), None),
    (("nfsMounts", 0, "mount"), "a"),
    (("nfsMounts", 0), "10.0.0.2:/share"),
    (("nfsMounts",), "10.0.0.2:/share"),
    (("lustreMounts", 0, "instanceIp"), 10),
    (("lustreMounts", 0, "volumeHandle"), None),
    (("lustreMounts", 0, "filesystem"), None),
    (("lustreMounts", 0, "mountPoint"), "a/b"),
    (("lustreMounts", 0, "server"), "10.0.0.2"),
    (("replicas",), 2),
]
CONTAINER_FAULTS: list[tuple[Path, object]] = [
    (("containerSpec", "imageUri"), "no image"),
    (("containerSpec", "imageUri"), None),
    (("containerSpec", "command"), {"python": "train.py"}),
    (("containerSpec", "args", 0), ["--epochs=1"]),
    (("containerSpec", "env"), {"A": "b"}),
    (("containerSpec", "env", 0, "name"), "1A"),
    (("containerSpec", "env", 0, "name"), None),
    (("containerSpec", "env", 1, "name"), "POOL"),
    (("containerSpec", "env", 1, "value"), 3),
    (("containerSpec", "env", 1, "text"), "x"),
    (("containerSpec", "env"), [{"name": f"A{number}", "value": ""} for number in range(101)]),
    (("containerSpec", "image"), "x"),
    (("containerSpec",), "x"),
]
PACKAGE_FAULTS: list[tuple[Path, object]] = [
    (("pythonPackageSpec", "executorImageUri"), "no image"),
    (("pythonPackageSpec", "executorImageUri"), None),
    (("pythonPackageSpec", "packageUris"), None),
    (("pythonPackageSpec", "packageUris", 0), "trainer.tar.gz"),
    (("pythonPackageSpec", "pythonModule"), "trainer-task"),
    (("pythonPackageSpec", "pythonModule"), None),
    (("pythonPackageSpec", "env", 0, "name"), "1A"),
    (("pythonPackageSpec", "env", 1, "value"), 3),
    (("pythonPackageSpec", "env", 1, "name"), "POOL"),
    (("pythonPackageSpec", "command"), ["python"]),
]
JOB_FAULTS: list[tuple[Path, object]] = [
    (("displayName",), 12),
    (("labels", "team"), "Vision"),
    (("labels",), ["team"]),
    (("encryptionSpec", "kmsKeyName"), "key"),
    (("encryptionSpec", "keyName"), "key"),
    (("encryptionSpec",), "key"),
    (("jobSpec", "serviceAccount"), None),
    (("jobSpec", "network"), "default"),
    (("jobSpec", "tensorboard"), "mine"),
    (("jobSpec", "enableWebAccess"), "yes"),
    (("jobSpec", "enableDashboardAccess"), "yes"),
    (("jobSpec", "persistentResourceId"), "Resource 1"),
    (("jobSpec", "reservedIpRanges", 0), 1),
    (("jobSpec", "experiment"), None),
    (("jobSpec", "experimentRun"), 1),
    (("jobSpec", "baseOutputDirectory", "outputUriPrefix"), "/tmp"),
    (("jobSpec", "baseOutputDirectory", "outputPrefix"), "gs://models"),
    (("jobSpec", "baseOutputDirectory"), "gs://models"),
    (("jobSpec", "scheduling", "timeout"), "1h"),
    (("jobSpec", "scheduling", "maxWaitDuration"), "1800"),
    (("jobSpec", "scheduling", "restartJobOnWorkerRestart"), "true"),
    (("jobSpec", "scheduling", "disableRetries"), "no"),
    (("jobSpec", "scheduling", "strategy"), "CHEAP"),
    (("jobSpec", "scheduling", "retries"), 3),
    (("jobSpec", "scheduling"), "SPOT"),
    (("jobSpec", "models", 0), "m"),
    (("jobSpec", "protectedArtifactLocationId"), "mars"),
    (("jobSpec", "pscInterfaceConfig", "networkAttachment"), "Attachment 1"),
    (("jobSpec", "pscInterfaceConfig", "dnsPeeringConfigs", 0, "domain"), "*.corp"),
    (("jobSpec", "pscInterfaceConfig", "dnsPeeringConfigs", 0, "targetProject"), None),
    (("jobSpec", "pscInterfaceConfig", "dnsPeeringConfigs", 0, "targetNetwork"), "a/b"),
    (("jobSpec", "pscInterfaceConfig", "dnsPeering"), []),
    (("jobSpec", "pscInterfaceConfig"), "a"),
    (("jobSpec", "workerPoolSpecs"), "one"),
    (("jobSpec", "workerPoolSpecs", 1), "worker"),
    (("jobSpec",), "one"),
    (("workerPoolSpecs",), []),
]


def assert_told_at(document: Any, path: Path, value: object) -> None:
    """The fault is reported at its path, in either spelling; a policy's fault may precede it there."""
    for spelled, where in ((copy.deepcopy, json_path), (snake, snake_path)):
        before = told_before(json.dumps({**spelled(document), "noSuchKey": 1})).get(where(path))
        after = told(spelled(changed(document, path, value)))
        assert where(path) in after
        assert after[where(path)] != before


@functools.cache
def told_before(document: str) -> Mapping[str, str]:
    """The faults of a document, as JSON, that many cases change."""
    return told(json.loads(document))


def case_id(value: object) -> str:
    return ".".join(map(str, value)) if isinstance(value, tuple) else str(value)[:12]


@pytest.mark.parametrize(
    ("index", "path", "value"),
    [(2, *row) for row in POOL_FAULTS] + [(index, *row) for index in (0, 2) for row in CONTAINER_FAULTS],
    ids=case_id,
)
def test_a_fault_of_a_role_with_a_container(index: int, path: Path, value: object) -> None:
    whole: Path = ("jobSpec", "workerPoolSpecs", index, *path)
    assert_told_at(job(), whole, value)


@pytest.mark.parametrize("index", [0, 2])
@pytest.mark.parametrize(("path", "value"), PACKAGE_FAULTS, ids=case_id)
def test_a_fault_of_a_role_with_packages(index: int, path: Path, value: object) -> None:
    spec = {**job_spec(), "workerPoolSpecs": [package_pool(number) for number in range(4)]}
    whole: Path = ("workerPoolSpecs", index, *path)
    assert_told_at({"displayName": "flowers", **spec}, whole, value)


@pytest.mark.parametrize(("path", "value"), JOB_FAULTS, ids=case_id)
def test_a_fault_of_the_job(path: Path, value: object) -> None:
    assert_told_at(job(), path, value)


def test_a_fault_of_a_trials_job_has_its_path_too() -> None:
    trials = {"studySpec": {}, "displayName": "flowers", "trialJobSpec": job_spec()}
    path: Path = ("trialJobSpec", "workerPoolSpecs", 3, "containerSpec", "imageUri")
    assert_told_at(trials, path, "no image")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("machineSpec", "machineType"), "n1-standard-3"),
        (("machineSpec", "acceleratorCount"), 3),
        (("machineSpec", "acceleratorType"), "NVIDIA_L4"),
    ],
    ids=case_id,
)
@pytest.mark.parametrize("index", [0, 1])
def test_what_the_policy_refuses_has_the_path_of_the_text(index: int, path: Path, value: object) -> None:
    whole: Path = ("workerPoolSpecs", index, *path)
    assert_told_at({"displayName": "flowers", **job_spec()}, whole, value)


def test_a_reserved_variable_is_a_fault_at_its_name() -> None:
    path: Path = ("workerPoolSpecs", 0, "containerSpec", "env", 0, "name")
    faulty = changed({"displayName": "flowers", **job_spec()}, path, "AIP_MODEL_DIR")
    assert "Vertex AI or this service sets it" in told(faulty)[json_path(path)]


def test_a_boolean_in_place_of_a_string_is_to_be_quoted() -> None:
    faulty = plain()
    faulty["workerPoolSpecs"][0]["containerSpec"]["env"] = [{"name": "DEBUG", "value": False}]
    assert 'quote it: "false"' in told(faulty)["$.workerPoolSpecs[0].containerSpec.env[0].value"]


def test_all_faults_come_at_once() -> None:
    whole = job_spec()
    pools = whole["workerPoolSpecs"]
    pools[0]["replicaCount"] = 2
    pools[1]["pythonPackageSpec"] = package_pool(1)["pythonPackageSpec"]
    pools[2]["containerSpec"]["env"].append({"name": "POOL", "value": "again"})
    pools[3]["diskSpec"]["bootDiskSizeGb"] = 1
    pools.append(pools[3])
    whole["models"] = ["m"]
    pools[0]["lustreMounts"][0]["mountPoint"] = "a b"
    pools[0]["machineSpec"]["reservationAffinity"]["values"] = []
    faults = told({"displayName": "flowers", **whole})
    expected = {
        "$.models[0]": "projects/PROJECT/locations/REGION/models/MODEL",
        "$.workerPoolSpecs[0].lustreMounts[0].mountPoint": "not in the expected format",
        "$.workerPoolSpecs[0].machineSpec.reservationAffinity.values": "too few entries",
        "$.workerPoolSpecs[0].replicaCount": "put the others in pool 1, the workers",
        "$.workerPoolSpecs[1]": "remove one of the two",
        "$.workerPoolSpecs[2].containerSpec.env[2].name": "keep one of the two",
        "$.workerPoolSpecs[3].diskSpec.bootDiskSizeGb": "100 to 64000 gigabytes",
        "$.workerPoolSpecs[4]": "0 chief, 1 workers, 2 parameter servers, 3 evaluators",
    }
    assert {path: words for path, words in expected.items() if words in faults[path]} == expected


@pytest.mark.parametrize(
    ("pools", "path", "words"),
    [
        ([], "$.workerPoolSpecs[0]", "missing: every job needs a chief"),
        ([{}, "pool"], "$.workerPoolSpecs[0]", "missing: every job needs a chief"),
        (["text"], "$.workerPoolSpecs[0]", "expected a mapping"),
        (
            ["pool", {"machineSpec": {"machineType": "n1-standard-4"}}],
            "$.workerPoolSpecs[1]",
            "nothing to run",
        ),
        ([{"machineSpec": {"machineType": "n1-standard-4"}}], "$.workerPoolSpecs[0]", "nothing to run"),
    ],
)
def test_a_pool_that_cannot_run_is_a_fault(pools: list[Any], path: str, words: str) -> None:
    small = plain()["workerPoolSpecs"][0]
    written = [small if each == "pool" else each for each in pools]
    assert words in told(plain(workerPoolSpecs=written))[path]


def test_a_key_in_both_spellings_is_a_fault() -> None:
    both = plain(worker_pool_specs=[])
    assert "two spellings" in told(both)["$.worker_pool_specs"]


def test_the_replica_environment_is_one_for_all_pools() -> None:
    variable = {"name": "TRAINMASTER_REPLICA_ENVIRONMENT", "value": "ai_platform"}
    spec = job_spec()
    spec["workerPoolSpecs"][1]["containerSpec"]["env"].append(variable)
    faults = told({"displayName": "flowers", **spec})
    assert "share one environment" in faults["$.workerPoolSpecs[1].containerSpec.env[2].value"]
    for pool in spec["workerPoolSpecs"]:
        pool["containerSpec"]["env"][2:] = [{**variable, "value": "mine"}]
    faults = told({"displayName": "flowers", **spec})
    assert "vertex, ai_platform" in faults["$.workerPoolSpecs[0].containerSpec.env[2].value"]


@pytest.mark.parametrize("document", [*CUSTOM, *TUNING], ids=case_id)
def test_a_list_of_one_may_be_written_as_that_one_as_for_gcloud(document: dict[str, Any]) -> None:
    for path in [path for path in places(document) if path[-1:] == (0,)]:
        member = functools.reduce(operator.getitem, path, document)
        written = [changed(document, path[:-1], value) for value in (member, [member])]
        alone, listed = (answer_to(json.dumps(one), name="m") for one in written)
        if isinstance(alone, Request) and isinstance(listed, Request):
            assert alone.document == listed.document
        else:
            assert places_of(alone) == places_of(listed), path


def places_of(answer: Request | Refused) -> list[str]:
    """The places of the faults, the same for a value and for a list of it."""
    return sorted(fault.path.replace("[0]", "") for fault in instance_of(Refused, answer).faults)


POOL = "$.workerPoolSpecs"


@pytest.mark.parametrize(
    ("pools", "paths"),
    [
        ("text", {POOL}),
        ([["text"]], {f"{POOL}[0]"}),
        ({"containerSpec": "x"}, {f"{POOL}.containerSpec", f"{POOL}.machineSpec.machineType"}),
        (
            {"machineSpec": "x", "containerSpec": {}},
            {f"{POOL}.machineSpec", f"{POOL}.containerSpec.imageUri"},
        ),
        (
            {
                "machineSpec": [{}, {"machineType": "N1"}],
                "containerSpec": {"imageUri": IMAGE, "args": {"a": "b"}},
            },
            {f"{POOL}.containerSpec.args", f"{POOL}.machineSpec", f"{POOL}.machineSpec[1].machineType"},
        ),
        (
            {
                "machineSpec": [{"machineType": "n1-standard-4"}],
                "containerSpec": {"imageUri": IMAGE, "env": {"E": "b", "N": 3}, "args": 3},
            },
            {f"{POOL}.containerSpec.env", f"{POOL}.containerSpec.env.N"},
        ),
    ],
)
def test_a_wrong_container_hides_no_fault_and_makes_none(pools: object, paths: set[str]) -> None:
    assert set(told(plain(workerPoolSpecs=pools))) == paths
