"""Files in gcloud's format, for tests: one with every field, changes to it, and the parsed result."""

import copy
import json
import re
from typing import Any

from tests.core.parsed import answer_to, sound_request
from tests.narrowing import instance_of
from trainmaster.orchestrator.core.documents.faults import PathPart, Refused, json_path
from trainmaster.orchestrator.core.requests.reading import dialect_of
from trainmaster.orchestrator.core.requests.request import Request
from trainmaster.orchestrator.core.requests.spec import JobSpec, spec_from

Path = tuple[PathPart, ...]
IMAGE = "us-central1-docker.pkg.dev/my-project/other/image:1"


def pool(index: int) -> dict[str, Any]:
    """A pool with everything that a pool with a container may have."""
    return {
        "machineSpec": {
            "machineType": "a2-highgpu-1g",
            "acceleratorType": "NVIDIA_TESLA_A100",
            "acceleratorCount": 1,
            "tpuTopology": "2x2",
            "gpuPartitionSize": "1g.10gb",
            "reservationAffinity": {
                "reservationAffinityType": "SPECIFIC_RESERVATION",
                "key": "compute.googleapis.com/reservation-name",
                "values": ["projects/p/zones/us-central1-a/reservations/r"],
            },
        },
        "replicaCount": "1",
        "nfsMounts": [{"server": "10.0.0.2", "path": "/share", "mountPoint": f"data{index}"}],
        "lustreMounts": [
            {"instanceIp": "10.0.0.9", "volumeHandle": "v", "filesystem": "fs", "mountPoint": f"fast{index}"}
        ],
        "diskSpec": {"bootDiskType": "pd-standard", "bootDiskSizeGb": 200},
        "containerSpec": {
            "imageUri": IMAGE,
            "command": ["python", f"role{index}.py"],
            "args": [f"--pool={index}"],
            "env": [{"name": "POOL", "value": str(index)}, {"name": "NEXT", "value": "$(POOL)0"}],
        },
    }


def package_pool(index: int) -> dict[str, Any]:
    """The same, with Python packages instead of the container."""
    packaged = pool(index)
    container = packaged.pop("containerSpec")
    packaged["pythonPackageSpec"] = {
        "executorImageUri": "us-docker.pkg.dev/vertex-ai/training/tf-cpu.2-17.py310:latest",
        "packageUris": ["gs://models/packages/trainer-1.0.tar.gz"],
        "pythonModule": f"trainer.role{index}",
        "args": container["args"],
        "env": container["env"],
    }
    return packaged


def job_spec() -> dict[str, Any]:
    """A CustomJobSpec with everything that a request has a place for."""
    return {
        "workerPoolSpecs": [pool(index) for index in range(4)],
        "scheduling": {
            "timeout": "3600s",
            "restartJobOnWorkerRestart": True,
            "strategy": "FLEX_START",
            "disableRetries": False,
            "maxWaitDuration": "1800s",
        },
        "serviceAccount": "trainer@my-project.iam.gserviceaccount.com",
        "network": "projects/12/global/networks/net",
        "reservedIpRanges": ["range-1"],
        "baseOutputDirectory": {"outputUriPrefix": "gs://models/team"},
        "tensorboard": "projects/p/locations/us-central1/tensorboards/1",
        "enableWebAccess": True,
        "enableDashboardAccess": True,
        "persistentResourceId": "resource-1",
        "experiment": "projects/p/locations/us-central1/metadataStores/default/contexts/e",
        "experimentRun": "projects/p/locations/us-central1/metadataStores/default/contexts/e-r1",
        "pscInterfaceConfig": {
            "networkAttachment": "projects/p/regions/us-central1/networkAttachments/a",
            "dnsPeeringConfigs": [
                {"domain": "corp.example.", "targetProject": "my-network", "targetNetwork": "shared"}
            ],
        },
        "models": ["projects/p/locations/us-central1/models/m@2"],
        "protectedArtifactLocationId": "us-central1",
    }


def job() -> dict[str, Any]:
    """A CustomJob with everything that a request has a place for."""
    key = "projects/p/locations/us-central1/keyRings/r/cryptoKeys/k"
    return {
        "displayName": "flowers",
        "jobSpec": job_spec(),
        "labels": {"team": "vision"},
        "encryptionSpec": {"kmsKeyName": key},
    }


def plain(**job_spec_keys: Any) -> dict[str, Any]:
    """A small CustomJobSpec that every check finds sound."""
    small = {"machineSpec": {"machineType": "n1-standard-4"}, "containerSpec": {"imageUri": IMAGE}}
    return {"displayName": "flowers", "workerPoolSpecs": [small], **job_spec_keys}


def changed(document: Any, path: Path, value: object = None) -> Any:
    """The document with another value at the path; None takes the key out."""
    whole = copy.deepcopy(document)
    place = whole
    for part in path[:-1]:
        place = place[part]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return whole


def snake_key(key: str) -> str:
    return re.sub("([A-Z])", lambda match: f"_{match[1].lower()}", key)


def snake(value: Any) -> Any:
    """The same document with its keys in snake_case."""
    if isinstance(value, dict):
        return {snake_key(key): snake(each) for key, each in value.items()}
    return [snake(each) for each in value] if isinstance(value, list) else value


def snake_path(path: Path) -> str:
    return json_path(tuple(snake_key(part) if isinstance(part, str) else part for part in path))


def sound(document: object, *, name: str | None = None) -> Request:
    return sound_request(json.dumps(document), name=name)  # which is YAML too


def told(document: object, *, name: str | None = None) -> dict[str, str]:
    """Each fault by its path."""
    answer = instance_of(Refused, answer_to(json.dumps(document), name=name))
    return {fault.path: str(fault) for fault in answer.faults}


def spec_of(document: dict[str, Any], name: str | None = None) -> JobSpec:
    """The job, from what the dialect says alone: what policies allow is checked elsewhere."""
    return spec_from(dialect_of(document).in_own(document, name).document)
