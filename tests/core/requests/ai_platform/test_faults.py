"""All faults of an AI Platform Training job are reported, each at its path, with the repair."""

from typing import Any

import pytest

from tests.core.ai_platform_jobs import IMAGE, custom, with_image, with_packages
from tests.core.parsed import faults_of, sound_request
from trainmaster.orchestrator.core.requests.ai_platform.job import MASTER
from trainmaster.orchestrator.core.requests.ai_platform.machines import MACHINES, RETIRED_ACCELERATORS, TIERS
from trainmaster.orchestrator.core.requests.ai_platform.programs import PYTHONS, RUNTIMES

HERE = "$.trainingInput"


def test_all_faults_of_a_file_that_mixes_tier_and_machines_are_reported() -> None:
    document = with_image(
        scaleTier="BASIC",
        masterType="n1-standard-4",
        masterConfig={"acceleratorConfig": {"type": "NVIDIA_TESLA_T4", "count": 1}, "containerArgs": ["--a"]},
        workerCount=2,
        workerConfig={},
        parameterServerType="large_model",
        runtimeVersion="2.11",
        packageUris=["gs://packages/a.tar.gz"],
        args=["--b"],
        region="europe-west1",
        serviceAccount="somebody@example.com",
        scheduling={"maxWaitTime": "60s", "maxRunningTime": "700000s", "priority": 2000},
    )
    faults = faults_of(document)
    assert sorted(faults) == [
        f"{HERE}.masterConfig.acceleratorConfig",
        f"{HERE}.masterConfig.containerArgs",
        f"{HERE}.masterType",
        f"{HERE}.packageUris",
        f"{HERE}.parameterServerType",
        f"{HERE}.region",
        f"{HERE}.runtimeVersion",
        f"{HERE}.scheduling.maxRunningTime",
        f"{HERE}.scheduling.maxWaitTime",
        f"{HERE}.scheduling.priority",
        f"{HERE}.serviceAccount",
        f"{HERE}.workerConfig",
        f"{HERE}.workerCount",
    ]
    assert faults[f"{HERE}.masterType"].repair == "write scaleTier: CUSTOM, or remove masterType"
    assert "write region: us-central1" in faults[f"{HERE}.region"].repair
    assert faults[f"{HERE}.scheduling.maxWaitTime"].allowed == "at least 1800s"


@pytest.mark.parametrize(
    ("document", "path", "repair"),
    [
        (with_image(masterType="n1-standard-4"), "scaleTier", "write scaleTier: CUSTOM"),
        (with_image(scaleTier="CUSTOM"), "masterType", "masterType: n1-standard-4"),
        ({"jobId": "census", "trainingInput": {"scaleTier": "BASIC"}}, "masterConfig", "--module-name"),
        (custom(workerCount=2), "workerType", "workerType: n1-standard-4"),
        (custom(workerType="n1-standard-4"), "workerCount", "workerCount: 1"),
        (custom(evaluatorConfig={"imageUri": IMAGE}), "evaluatorConfig", "evaluatorType and evaluatorCount"),
        (with_image(scaleTier="BASICS"), "scaleTier", "did you mean 'BASIC'?"),
        (
            custom(masterType="standard", workerType="n1-standard-4", workerCount=1),
            "workerType",
            "masterType: n1-standard-4",
        ),
        (custom(workerType="standard", workerCount=1), "workerType", "write workerType: n1-standard-4"),
        (custom(masterType="standrd_p100"), "masterType", "did you mean 'standard_p100'?"),
        (
            custom(
                masterType="standard",
                masterConfig={"acceleratorConfig": {"type": "NVIDIA_TESLA_T4", "count": 1}},
            ),
            "masterConfig.acceleratorConfig",
            "masterType: n1-standard-4",
        ),
        (custom(runtimeVersion="2.11"), "runtimeVersion", "remove runtimeVersion"),
        (custom(pythonVersion="3.7"), "pythonVersion", "remove pythonVersion"),
        (custom(pythonModule="trainer.task"), "pythonModule", "remove pythonModule"),
        (
            custom(args=["--a"], masterConfig={"containerCommand": ["b"]}),
            "masterConfig.containerCommand",
            "masterConfig.containerArgs",
        ),
        (
            with_packages(masterConfig={"containerArgs": ["--a"]}),
            "masterConfig.containerArgs",
            "write them in args",
        ),
        (with_packages(pythonModule=None), "pythonModule", "--module-name"),
        (with_packages(packageUris=None), "packageUris", "--packages"),
        (with_packages(runtimeVersion=None), "runtimeVersion", "--runtime-version"),
        (with_packages(runtimeVersion=2.1), "runtimeVersion", "quote it: '2.1' or '2.10'"),
        (
            with_packages(runtimeVersion=1.15),
            "runtimeVersion",
            "build an image and write masterConfig: {image",
        ),
        (with_packages(pythonVersion=3.7), "pythonVersion", "quote it: '3.7'"),
        (with_packages(pythonVersion=3.1), "pythonVersion", "write one of these, in quotes"),
        (with_packages(pythonVersion=2.7), "pythonVersion", "build an image and write masterConfig"),
        (with_packages(runtimeVersion="9.9"), "runtimeVersion", ""),
        (custom(masterConfig={"tpuTfVersion": "2.1"}), "masterConfig.tpuTfVersion", "remove it"),
        (custom(jobDir="/tmp/jobs"), "jobDir", ""),
        (custom(nasJobSpec={}), "nasJobSpec", ""),
        (custom(masterCount=2), "masterCount", ""),
        (custom(useChiefInTfConfig="yes"), "useChiefInTfConfig", ""),
        (custom(hyperparameters={"params": [{"type": "DOUBLE"}]}), "hyperparameters.params", None),
        (custom(hyperparameters=[]), "hyperparameters", None),
        (custom(masterConfig={"imageUrl": IMAGE}), "masterConfig.imageUrl", None),
        (custom(scheduling={"maxWaitTime": "1h"}), "scheduling.maxWaitTime", None),
        (custom(scheduling={"maxRunningTime": "1.5h"}), "scheduling.maxRunningTime", ""),
        (custom(scheduling={"maxRunningTime": "90"}), "scheduling.maxRunningTime", "write 90s"),
        (custom(scheduling={"maxWaitTime": {"seconds": 3600}}), "scheduling.maxWaitTime", None),
        (custom(scheduling={"strategy": "CHEAP"}), "scheduling.strategy", None),
        (custom(enableWebAccess="yes"), "enableWebAccess", "without quotes"),
        (custom(workerType="n1-standard-4", workerCount="two"), "workerCount", None),
        (custom(workerType="n1-standard-4", workerCount=-1), "workerCount", None),
        (custom(masterType="n9-standard-4"), "masterType", "did you mean"),
        (custom(encryptionConfig={"kmsKeyName": "key"}), "encryptionConfig.kmsKeyName", None),
    ],
)
def test_a_fault_has_its_place_and_repair(document: dict[str, Any], path: str, repair: str | None) -> None:
    faults = faults_of(document)
    found = [fault for at, fault in faults.items() if at.startswith(f"{HERE}.{path}")]
    assert found, faults
    if repair is not None:
        assert list(faults) == [f"{HERE}.{path}"]
        assert repair in found[0].repair


def test_a_role_with_an_image_needs_one_for_the_master() -> None:
    document = custom(workerType="n1-standard-4", workerCount=1, workerConfig={"imageUri": IMAGE})
    del document["trainingInput"]["masterConfig"]
    assert list(faults_of(document)) == [f"{HERE}.masterConfig"]


@pytest.mark.parametrize("job_id", ["1census", "census-1", "x" * 129, 7])
def test_a_job_id_that_the_old_service_refused_is_refused(job_id: object) -> None:
    assert list(faults_of(custom() | {"jobId": job_id})) == ["$.jobId"]


def test_a_message_without_a_name_says_how_to_name_the_model() -> None:
    document = {"trainingInput": custom()["trainingInput"]}
    faults = faults_of(document)
    assert list(faults) == ["$.jobId"]
    assert "labels: {model_name: census}" in faults["$.jobId"].repair


def test_a_prediction_job_is_not_a_request() -> None:
    assert list(faults_of({"jobId": "a", "predictionInput": {}}, name="a"))[:2] == [
        "$.predictionInput",
        "$.trainingInput",
    ]


@pytest.mark.parametrize("name", [name for name, tier in TIERS.items() if tier[MASTER][1].retired])
def test_a_retired_tier_names_todays_nearest(name: str) -> None:
    faults = faults_of(with_image(scaleTier=name))
    fault = faults[f"{HERE}.scaleTier"]
    assert "no longer offered" in fault.problem
    assert "BASIC" in fault.allowed
    assert name not in fault.allowed.split(", ")


def test_basic_gpu_names_the_lines_to_write() -> None:
    (fault,) = faults_of(with_image(scaleTier="BASIC_GPU")).values()
    assert fault.repair == (
        "write scaleTier: CUSTOM, masterType: n1-standard-8, "
        "masterConfig: {acceleratorConfig: {type: NVIDIA_TESLA_T4, count: 1}}"
    )
    mended = with_image(
        scaleTier="CUSTOM",
        masterType="n1-standard-8",
        masterConfig={"acceleratorConfig": {"type": "NVIDIA_TESLA_T4", "count": 1}},
    )
    sound_request(mended)


@pytest.mark.parametrize("name", [name for name, row in MACHINES.items() if row.retired])
def test_a_retired_machine_names_todays_nearest(name: str) -> None:
    fault = faults_of(custom(workerType=name, workerCount=1))[f"{HERE}.workerType"]
    assert "no longer offered" in fault.problem
    assert MACHINES[name].machine in fault.repair


@pytest.mark.parametrize("name", RETIRED_ACCELERATORS)
def test_a_retired_accelerator_names_todays_nearest(name: str) -> None:
    config = {"acceleratorConfig": {"type": name, "count": 1}}
    (fault,) = faults_of(custom(masterConfig=config)).values()
    assert fault.path == f"{HERE}.masterConfig.acceleratorConfig.type"
    assert fault.repair == RETIRED_ACCELERATORS[name]


@pytest.mark.parametrize(
    ("key", "version"),
    [
        *(("runtimeVersion", version) for version, row in RUNTIMES.items() if row.is_gone),
        *(("pythonVersion", version) for version, row in PYTHONS.items() if row.is_gone),
    ],
)
def test_a_retired_version_suggests_your_own_image(key: str, version: str) -> None:
    (fault,) = faults_of(with_packages(**{"scaleTier": "BASIC", key: version})).values()
    assert fault.path == f"{HERE}.{key}"
    assert "TensorFlow 1" in fault.problem
    assert "packages-in-your-own-image" in fault.repair


@pytest.mark.parametrize(
    ("key", "value", "nearest"),
    [
        ("algorithm", "POPULATION_BASED_TRAINING", "algorithm: ALGORITHM_UNSPECIFIED"),
        ("resumePreviousJobId", "census_1", "narrow the ranges"),
    ],
)
def test_settings_that_vertex_ai_lacks_are_refused_in_a_study(key: str, value: str, nearest: str) -> None:
    params = [{"parameterName": "lr", "type": "DOUBLE", "minValue": 0.1, "maxValue": 1.0}]
    (fault,) = faults_of(custom(hyperparameters={"params": params, key: value})).values()
    assert fault.path == f"{HERE}.hyperparameters.{key}"
    assert nearest in fault.repair


def test_faults_of_a_study_have_the_places_of_the_text() -> None:
    faults = faults_of(
        custom(
            hyperparameters={
                "goal": "BEST",
                "maxTrials": 2,
                "maxParallelTrials": 3,
                "params": [
                    {"parameterName": "a", "type": "DOUBLE", "minValue": 2, "maxValue": 1},
                    {"parameterName": "a", "type": "DOUBLE", "minValue": 1, "maxValue": 2},
                    {"parameterName": "b", "type": "REAL"},
                    {"parameterName": "c", "type": "CATEGORICAL", "categoricalValues": ["x", 1]},
                    {"parameterName": "d", "type": "INTEGER", "minValue": 1, "maxValue": 2.5},
                    {"parameterName": "e", "type": "DISCRETE", "categoricalValues": ["x"]},
                ],
            }
        )
    )
    params = f"{HERE}.hyperparameters.params"
    assert sorted(faults) == [
        f"{HERE}.hyperparameters.goal",
        f"{HERE}.hyperparameters.maxParallelTrials",
        f"{params}[0].minValue",
        f"{params}[1].parameterName",
        f"{params}[2].type",
        f"{params}[3].categoricalValues[1]",
        f"{params}[4].maxValue",
        f"{params}[5].categoricalValues",
        f"{params}[5].discreteValues",
    ]


def test_a_mended_mix_of_machines_keeps_its_accelerators() -> None:
    document = custom(masterType="n1-standard-16", workerType="standard_p100", workerCount=2)
    repair = faults_of(document)[f"{HERE}.workerType"].repair
    assert repair == (
        "write workerType: n1-standard-8, workerConfig: "
        "{acceleratorConfig: {type: NVIDIA_TESLA_P100, count: 1}}"
    )


def test_a_machine_that_is_gone_has_one_repair_with_its_accelerators() -> None:
    gpus = {"acceleratorConfig": {"type": "NVIDIA_TESLA_K80", "count": 4}}
    document = custom(masterType="complex_model_m_gpu", masterConfig={"imageUri": IMAGE, **gpus})
    assert list(faults_of(document)) == [f"{HERE}.masterType"]


@pytest.mark.parametrize("below", ["", "/3/model"])
def test_a_job_dir_inside_another_runs_directory_is_refused(below: str) -> None:
    job_dir = f"gs://models/census/census-20260301t120000-0123456789{below}"
    (fault,) = faults_of(with_image(scaleTier="BASIC", jobDir=job_dir)).values()
    assert fault.path == f"{HERE}.jobDir"
    assert fault.problem == "it is inside another run's directory"
    assert fault.repair == "name the directory above it: each run gets its own directory there"
