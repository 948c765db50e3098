"""A cluster that makes no sense is refused whole, and what is doubtful about it is warned of."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.core.roles import (
    L4,
    MACHINE,
    ONE,
    OTHER,
    REDUCTION_SERVER,
    TRAINER,
    TUNING,
    WORKERS,
    accepted,
    cluster,
    pools,
    request,
    told,
)


@pytest.mark.parametrize(
    ("chief", "path", "words"),
    [
        ({**MACHINE, "count": 2}, "$.cluster.chief.count", "make the others workers, with count: 1"),
        ({**MACHINE, "count": 0}, "$.cluster.chief.count", "remove it"),
        ([MACHINE, MACHINE, MACHINE], "$.cluster.chief", "make the others workers, with count: 2"),
        ([MACHINE], "$.cluster.chief", "without '- '"),
    ],
)
def test_two_chiefs_are_refused_however_they_are_written(chief: object, path: str, words: str) -> None:
    fault = told(request(cluster={"chief": chief}))[path]
    assert fault.problem == "a job has exactly one chief"
    assert words in fault.repair


def test_a_chief_may_say_that_it_is_one() -> None:
    assert accepted(request(cluster={"chief": {**MACHINE, "count": 1}})).spec.cluster.chief.replicas == 1


@pytest.mark.parametrize("image", [OTHER, REDUCTION_SERVER])
def test_parameter_servers_without_workers_are_refused(image: str) -> None:
    document = request(cluster=cluster(parameter_servers={**ONE, "image": image}))
    assert "add workers" in told(document)["$.cluster.parameter_servers"].repair


@pytest.mark.parametrize("role", ["workers", "evaluators"])
def test_a_reduction_server_is_not_a_trainer(role: str) -> None:
    document = request(cluster=cluster(**{role: {**ONE, "image": REDUCTION_SERVER}}))
    assert "does not train" in told(document)[f"$.cluster.{role}.image"].problem


SERVED = {"workers": WORKERS, "parameter_servers": ONE}


@pytest.mark.parametrize(
    ("roles", "args", "words"),
    [
        (SERVED, ["--strategy=multi_worker_mirrored"], "--strategy=parameter_server"),
        (SERVED, ["--strategy", "mirrored"], "leave parameter_servers out"),
        (SERVED, ["--strategy=parameter_server", "--strategy=one_device"], "leave parameter_servers out"),
        ({"workers": WORKERS}, ["--strategy=parameter_server"], "add both"),
        ({}, ["--strategy=parameter_server"], "add both"),
        ({"workers": WORKERS}, ["--strategy=mirrored"], "--strategy=multi_worker_mirrored"),
        ({"workers": WORKERS}, ["--strategy=one_device"], "leave workers out"),
        ({}, ["--strategy=multi_worker_miror"], "did you mean 'multi_worker_mirrored'?"),
        ({}, ["--strategy"], "every replica would exit with status 2"),
        ({}, ["--strategy", "--epochs=1"], "every replica would exit with status 2"),
    ],
)
def test_a_strategy_unfit_for_the_cluster_is_refused(
    roles: Mapping[str, Any], args: list[str], words: str
) -> None:
    faults = told(request(image=TRAINER, args=["--epochs=1", *args], cluster=cluster(**roles)))
    place = f"$.args[{1 + max(index for index, word in enumerate(args) if word.startswith('--strategy'))}]"
    assert list(faults) == [place]
    assert words in str(faults[place])


@pytest.mark.parametrize(
    ("roles", "args"),
    [
        (SERVED, ["--strategy=parameter_server"]),
        (SERVED, ["--strategy=one_device", "--strategy=auto"]),
        (SERVED, []),
        ({"workers": WORKERS, "evaluators": ONE}, ["--strategy=multi_worker_mirrored"]),
        ({}, ["--strategy=one_device"]),
        ({"evaluators": ONE}, ["--strategy=one_device"]),
        ({}, ["--strategy=mirrored"]),
    ],
)
def test_a_strategy_that_fits_the_cluster_is_taken(roles: Mapping[str, Any], args: list[str]) -> None:
    accepted(request(image=TRAINER, args=args, cluster=cluster(**roles)))


def test_a_strategy_in_a_roles_arguments_is_a_fault_at_its_own_path() -> None:
    servers = {**ONE, "args": ["--strategy=mirrored"]}
    faults = told(request(image=TRAINER, cluster=cluster(workers=WORKERS, parameter_servers=servers)))
    assert list(faults) == ["$.cluster.parameter_servers.args[0]"]


def test_the_strategy_argument_of_other_programs_is_not_checked() -> None:
    accepted(request(image=OTHER, args=["--strategy=mirrored"], cluster=cluster(**SERVED)))


@pytest.mark.parametrize("tuning", [None, TUNING])
@pytest.mark.parametrize("role", ["chief", "evaluators"])
def test_evaluators_need_the_runs_checkpoint_directory(role: str, tuning: Mapping[str, Any] | None) -> None:
    roles = cluster(evaluators=ONE)
    roles[role] = {**roles[role], "env": {"AIP_CHECKPOINT_DIR": ""}}
    fault = told(request(cluster=roles, tuning=tuning))[f"$.cluster.{role}.env.AIP_CHECKPOINT_DIR"]
    assert "would not see the checkpoints" in fault.problem
    assert ("shared by all trials" in fault.problem) is (tuning is not None)


def test_all_faults_of_roles_and_request_are_reported_at_once() -> None:
    document = request(
        model_name="Bad Name",
        image=TRAINER,
        args=["--strategy=mirrored"],
        web_access=True,
        scheduling={"restart_on_worker_restart": True, "disable_retries": True, "max_wait_s": 1},
        cluster={
            "chief": {**MACHINE, "count": 2},
            "parameter_servers": {"machine": "n1-standard-5", "count": 1, "image": "evil.example/x"},
            "evaluators": {**ONE, "env": {"AIP_CHECKPOINT_DIR": "gs://elsewhere"}, "comand": ["x"]},
        },
    )
    assert list(told(document)) == [
        "$.args[0]",
        "$.cluster.chief.count",
        "$.cluster.evaluators.comand",
        "$.cluster.evaluators.env.AIP_CHECKPOINT_DIR",
        "$.cluster.parameter_servers",
        "$.cluster.parameter_servers.image",
        "$.cluster.parameter_servers.machine",
        "$.model_name",
        "$.scheduling.max_wait_s",
        "$.scheduling.restart_on_worker_restart",
        "$.web_access",
    ]


@pytest.mark.parametrize(
    ("changes", "path", "words"),
    [
        (
            {"scheduling": {"spot": True}, "cluster": cluster(workers=WORKERS)},
            "$.scheduling.spot",
            "restart_on_worker_restart: true",
        ),
        (
            {"cluster": {"chief": {"machine": "cloud-tpu", "accelerator": {"type": "TPU_V3", "count": 128}}}},
            "$.cluster.chief.machine",
            "not verified",
        ),
    ],
)
def test_a_doubtful_request_is_accepted_with_a_warning(
    changes: Mapping[str, Any], path: str, words: str
) -> None:
    (warning,) = accepted(request(**changes)).warnings
    assert warning.path == path
    assert words in str(warning)


@pytest.mark.parametrize(
    "changes",
    [
        {"scheduling": {"spot": True}},
        {
            "scheduling": {"spot": True, "restart_on_worker_restart": True},
            "cluster": cluster(workers=WORKERS),
        },
        {"scheduling": {"spot": True}, "cluster": cluster(**SERVED)},
        {"cluster": {"chief": {"machine": "ct6e-standard-4t", "tpu_topology": "2x2"}}},
    ],
)
def test_a_sound_request_is_accepted_without_a_warning(changes: Mapping[str, Any]) -> None:
    assert accepted(request(**changes)).warnings == ()


H200 = {"machine": "a3-ultragpu-8g", "accelerator": {"type": "NVIDIA_H200_141GB", "count": 8}}
B200 = {"machine": "a4-highgpu-8g", "accelerator": {"type": "NVIDIA_B200", "count": 8}}
H100 = {"machine": "a3-highgpu-8g", "accelerator": {"type": "NVIDIA_H100_80GB", "count": 8}}
A100 = {"machine": "a2-highgpu-1g", "accelerator": {"type": "NVIDIA_TESLA_A100", "count": 1}}


def with_disk(pool: Mapping[str, Any], **disk: object) -> dict[str, Any]:
    return request(cluster={"chief": {**pool, "disk": disk}})


@pytest.mark.parametrize("pool", [MACHINE, L4, A100, H100, H200, B200], ids=lambda pool: pool["machine"])
def test_a_disk_of_a_size_alone_leaves_its_type_to_the_service(pool: Mapping[str, Any]) -> None:
    (sent,) = pools(with_disk(pool, size_gb=500))
    assert sent["diskSpec"] == {"bootDiskSizeGb": 500}


@pytest.mark.parametrize(
    ("pool", "disk_type", "allowed"),
    [
        (H200, "pd-ssd", "hyperdisk-balanced"),
        (B200, "pd-standard", "hyperdisk-balanced"),
        (H100, "pd-standard", "pd-ssd, hyperdisk-balanced"),
        (A100, "hyperdisk-balanced", "pd-ssd, pd-standard"),
        (L4, "pd-standard", "pd-ssd"),
        (MACHINE, "hyperdisk-balanced", "pd-ssd, pd-standard"),
    ],
)
def test_a_disk_unfit_for_the_machine_is_refused(
    pool: Mapping[str, Any], disk_type: str, allowed: str
) -> None:
    fault = told(with_disk(pool, type=disk_type))["$.cluster.chief.disk.type"]
    assert f"{pool['machine']} cannot boot from" in fault.problem
    assert (fault.allowed, fault.found) == (allowed, f"'{disk_type}'")
    for each in allowed.split(", "):
        accepted(with_disk(pool, type=each))


def test_a_fallback_to_a_machine_without_the_requests_disk_is_refused_at_its_own_path() -> None:
    document = {**with_disk(A100, type="pd-ssd"), "fallbacks": [{"cluster": {"chief": B200}}]}
    assert list(told(document)) == ["$.fallbacks[0].cluster.chief.disk.type"]


def test_a_role_alone_in_a_list_is_checked_too() -> None:
    faults = told(request(cluster=cluster(workers=[{**ONE, "machine": "n1-standrad-4"}])))
    assert faults.keys() == {"$.cluster.workers", "$.cluster.workers.machine"}
