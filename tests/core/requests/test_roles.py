"""Roles inherit missing settings from the chief, except the machine, which each role names."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.core.roles import (
    L4,
    MACHINE,
    ONE,
    OTHER,
    PACKAGE,
    REDUCTION_SERVER,
    TRAINER,
    cluster,
    pools,
    request,
)

OWN_IMAGE = "us-central1-docker.pkg.dev/my-project/other/of-its-own:v1"


def container(
    image: str, *args: str, command: tuple[str, ...] = (), env: Mapping[str, str] | None = None
) -> dict[str, Any]:
    fields: dict[str, Any] = {"imageUri": image}
    if command:
        fields["command"] = list(command)
    if args:
        fields["args"] = list(args)
    if env:
        fields["env"] = [{"name": name, "value": value} for name, value in env.items()]
    return {"containerSpec": fields}


def package(*args: str, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "executorImageUri": PACKAGE["executor_image"],
        "packageUris": PACKAGE["uris"],
        "pythonModule": PACKAGE["module"],
    }
    if args:
        fields["args"] = list(args)
    if env:
        fields["env"] = [{"name": name, "value": value} for name, value in env.items()]
    return {"pythonPackageSpec": fields}


ENV = {"A": "top", "B": "top"}
TOP = {"command": ["run"], "args": ["--top"], "env": ENV}
RUN = ("run",)
WHOLE = container(OTHER, "--top", command=RUN, env=ENV)
MERGED = {"A": "top", "B": "mine", "C": "mine"}
OWN = {"image": OWN_IMAGE, "args": ["--own"], "env": {"C": "own"}}
OF_OWN = container(OWN_IMAGE, "--own", env={"C": "own"})
PACKAGED = {"python_package": PACKAGE}


@pytest.mark.parametrize(
    ("top", "chief", "worker", "of_chief", "of_worker"),
    [
        (TOP, {}, {}, WHOLE, WHOLE),
        (TOP, {}, {"args": ["--mine"]}, WHOLE, container(OTHER, "--mine", command=RUN, env=ENV)),
        (
            TOP,
            {"command": ["lead"]},
            {"args": []},
            container(OTHER, "--top", command=("lead",), env=ENV),
            container(OTHER, command=RUN, env=ENV),
        ),
        (
            TOP,
            {},
            {"env": {"B": "mine", "C": "mine"}},
            WHOLE,
            container(OTHER, "--top", command=RUN, env=MERGED),
        ),
        (TOP, {}, {"image": OWN_IMAGE}, WHOLE, container(OWN_IMAGE)),
        (TOP, {}, OWN, WHOLE, OF_OWN),
        ({**TOP, "image": None}, OWN, {}, OF_OWN, container(OWN_IMAGE, "--top", command=RUN, env=ENV)),
        (
            {"image": None, **PACKAGED, "args": ["--top"], "env": ENV},
            {},
            {"args": ["--mine"]},
            package("--top", env=ENV),
            package("--mine", env=ENV),
        ),
        (
            {"args": ["--top"]},
            {},
            {**PACKAGED, "args": ["--mine"]},
            container(OTHER, "--top"),
            package("--mine"),
        ),
        ({"image": None, "args": ["--top"]}, PACKAGED, {}, package(), package("--top")),
    ],
    ids=[
        "all run what the request says",
        "own args stand instead of the request's",
        "empty args are args, and a chief's words are its own",
        "variables are merged, and the role's own wins",
        "its own image inherits nothing",
        "its own image with its own arguments",
        "a role without an image runs the chief's, with the request's words",
        "packages are inherited like images",
        "packages beside an image",
        "the chief's packages are every role's",
    ],
)
@pytest.mark.parametrize("role", ["workers", "parameter_servers", "evaluators"])
def test_a_role_runs_its_own_program_or_the_chiefs(
    role: str,
    top: Mapping[str, Any],
    chief: Mapping[str, Any],
    worker: Mapping[str, Any],
    of_chief: Mapping[str, Any],
    of_worker: Mapping[str, Any],
) -> None:
    roles: dict[str, Any] = {"workers": {**ONE, "image": OWN_IMAGE}} if role == "parameter_servers" else {}
    document = request(
        **top, cluster={"chief": {**MACHINE, **chief}, **roles, role: {**ONE, "count": 1, **worker}}
    )
    found = pools(document)
    assert of_chief.items() <= found[0].items()
    assert of_worker.items() <= found[-1].items()


def test_each_role_has_its_own_machine_accelerator_and_disk() -> None:
    roles = {
        "workers": {**L4, "count": 1, "disk": {"size_gb": 300}},
        "parameter_servers": {"machine": "n1-highmem-8", "count": 1},
        "evaluators": {"machine": "n1-standard-4", "count": 1, "accelerator": {"type": "NVIDIA_TESLA_T4", "count": 2}},
    }  # fmt: skip
    found = pools(request(cluster=cluster(**roles)))
    assert [pool["machineSpec"] for pool in found] == [
        {"machineType": "n1-standard-4"},
        {"machineType": "g2-standard-4", "acceleratorType": "NVIDIA_L4", "acceleratorCount": 1},
        {"machineType": "n1-highmem-8"},
        {"machineType": "n1-standard-4", "acceleratorType": "NVIDIA_TESLA_T4", "acceleratorCount": 2},
    ]
    assert [pool.get("diskSpec") for pool in found] == [None, {"bootDiskSizeGb": 300}, None, None]


def test_reduction_servers_stand_where_parameter_servers_do() -> None:
    servers = {"machine": "n1-highcpu-16", "count": 4, "image": REDUCTION_SERVER}
    document = request(
        args=["--strategy=multi_worker_mirrored"],
        image=TRAINER,
        cluster={"chief": L4, "workers": {**L4, "count": 1}, "parameter_servers": servers},
    )
    assert pools(document)[2] == {
        "machineSpec": {"machineType": "n1-highcpu-16"},
        "replicaCount": "4",
        "containerSpec": {"imageUri": REDUCTION_SERVER},
    }
