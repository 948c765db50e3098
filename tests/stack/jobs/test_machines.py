"""What a job names must exist in the service, as far as the stack is given it."""

from typing import Any

import httpx
import pytest

from tests.fixtures import fixture_of
from trainstack.jobs.resource.machines import REGIONS, machine_types_from

from .conftest import PARENT, ROOT, Stack, run_stack

MACHINES = machine_types_from(ROOT / "functions" / "policy.yaml")
SPEC = "job_spec.worker_pool_specs[0]"


knowing = fixture_of(run_stack, machines=MACHINES)


def refusal(stack: Stack, parent: str = PARENT, *, more: Any = None, **pool: Any) -> tuple[int, str]:
    """The status and the sentence of the answer to a job whose only pool has these fields."""
    whole = {
        "machineSpec": {"machineType": "n1-standard-4"},
        "replicaCount": "1",
        "containerSpec": {"imageUri": "image"},
    }
    body = {"displayName": "d", "jobSpec": {"workerPoolSpecs": [{**whole, **pool}], **(more or {})}}
    answer = httpx.post(f"{stack.url}/v1/{parent}/customJobs", json=body)
    return answer.status_code, answer.json().get("error", {}).get("message", "")


def machine(name: str, accelerator: str = "", count: int = 0, topology: str = "") -> dict[str, Any]:
    fields = {"acceleratorType": accelerator, "acceleratorCount": count, "tpuTopology": topology}
    return {"machineType": name, **{key: value for key, value in fields.items() if value}}


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        (machine("n1-standrad-4"), 'machine_type: Machine type "n1-standrad-4" is not supported. Did you mean "n1-standard-4"?'),
        (machine("e2-standard-4", "NVIDIA_TESLA_T4", 1),
         'accelerator_type: Accelerator "NVIDIA_TESLA_T4" is not supported for machine type "e2-standard-4".'),
        (machine("n1-standard-4", "NVIDIA_TESLA_T4", 3),
         'accelerator_count: machine type "n1-standard-4" has 1, 2, 4 of "NVIDIA_TESLA_T4", found 3.'),
        (machine("n1-standard-4", "NVIDIA_TESLA_T4"),
         "accelerator_type: Both `accelerator_type` and `accelerator_count` should be specified or none."),
        (machine("n1-standard-4", "", 1),
         "accelerator_type: Both `accelerator_type` and `accelerator_count` should be specified or none."),
        (machine("g2-standard-4"), 'accelerator_type: machine type "g2-standard-4" has NVIDIA_L4; give type and count.'),
        (machine("ct5lp-hightpu-1t", topology="9x9"), "tpu_topology: machine type \"ct5lp-hightpu-1t\" has 1x1, found '9x9'."),
        (machine("n1-standard-4", topology="1x1"), "tpu_topology: machine type \"n1-standard-4\" has none, found '1x1'."),
    ],
)  # fmt: skip
def test_machines_that_the_service_does_not_have_are_refused(
    knowing: Stack, spec: dict[str, Any], fault: str
) -> None:
    assert refusal(knowing, machineSpec=spec) == (400, f"{SPEC}.machine_spec.{fault}")


def test_every_machine_of_the_shipped_policy_is_accepted_with_its_accelerators(knowing: Stack) -> None:
    assert refusal(knowing, machineSpec=machine("n1-standard-4", "NVIDIA_TESLA_T4", 4))[0] == 200
    assert refusal(knowing, machineSpec=machine("ct5lp-hightpu-4t", topology="2x2"))[0] == 200


def test_a_stack_without_a_catalogue_accepts_every_well_formed_machine(idle: Stack) -> None:
    assert refusal(idle, machineSpec=machine("x9-standard-4", "NVIDIA_TESLA_T4", 3))[0] == 200
    assert "expected a name such as" in refusal(idle, machineSpec=machine("n1 standard 4"))[1]


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ({"serviceAccount": "nobody@nowhere.com"}, "job_spec.service_account: expected NAME@PROJECT"),
        ({"baseOutputDirectory": {"outputUriPrefix": "gs://missing/a"}}, "output_uri_prefix: the bucket 'missing' does not exist"),
        ({"network": "default"}, "job_spec.network: expected projects/NUMBER/global/networks/NAME"),
    ],
)  # fmt: skip
def test_accounts_buckets_and_networks_that_cannot_be_are_refused(
    idle: Stack, more: dict[str, Any], fault: str
) -> None:
    status, message = refusal(idle, more=more)
    assert status == 400
    assert fault in message


def test_disks_of_other_types_and_sizes_are_refused_together(idle: Stack) -> None:
    status, message = refusal(idle, diskSpec={"bootDiskType": "floppy", "bootDiskSizeGb": 1})
    assert status == 400
    assert "boot_disk_type: expected one of pd-ssd" in message
    assert "boot_disk_size_gb: expected 100 to 64000, found 1" in message


@pytest.mark.parametrize("key", ["k", "projects/p/locations/europe-west1/keyRings/r/cryptoKeys/k"])
def test_a_key_has_its_full_name_and_the_region_of_the_job(idle: Stack, key: str) -> None:
    body = {"displayName": "d", "jobSpec": {}, "encryptionSpec": {"kmsKeyName": key}}
    answer = httpx.post(f"{idle.url}/v1/{PARENT}/customJobs", json=body)
    assert "encryption_spec.kms_key_name: " in answer.json()["error"]["message"]


def test_a_region_that_does_not_exist_is_refused(idle: Stack) -> None:
    sentence = "Permission denied on 'locations/mars-north1' (or it may not exist)."
    assert refusal(idle, "projects/p1/locations/mars-north1") == (403, sentence)


def test_the_regions_are_those_of_the_sdk() -> None:
    from google.cloud.aiplatform.constants import base  # takes seconds to import

    assert base.SUPPORTED_REGIONS - {"global"} == REGIONS
