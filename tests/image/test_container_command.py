"""The command that becomes a container, made without one."""

import asyncio
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from trainstack.gateway.authority import Authority
from trainstack.gateway.identity import WorkloadIdentities
from trainstack.iam import Grant, Grants
from trainstack.iam.principals import Principal, Tokens
from trainstack.jobs.images.dockerfile import DockerfileImage
from trainstack.jobs.images.programs import PoolContainer, PoolProgram
from trainstack.jobs.replicas.containers import Containers, mirrored_name
from trainstack.jobs.replicas.isolation import Placement
from trainstack.sandbox.network import Network

HERE = Containers(
    podman="/usr/bin/podman", oci_runtime="/usr/sbin/runc", buckets=Path("/buckets"), stack="/state"
)
DIGEST = "sha256:" + "0a" * 32


def argv(
    tmp_path: Path,
    container: PoolContainer,
    env: Mapping[str, str] | None = None,
    *,
    containers: Containers = HERE,
    **more: Any,  # Placement's
) -> list[str]:
    """The command; what goes into the container is in a new folder, `0` or a later number."""
    program = PoolProgram(image=DockerfileImage(tree=tmp_path), argv=(), env=(), container=container)
    scratch = tmp_path / str(sum(path.name.isdigit() for path in tmp_path.iterdir()))
    placement = Placement(program=program, service=env or {}, scratch=scratch, name="replica-1", **more)
    return containers.start_of(placement).argv


def test_variables_stand_in_a_file_of_this_users_own_and_not_on_the_command_line(tmp_path: Path) -> None:
    words = argv(tmp_path, PoolContainer(image="i"), {"TOKEN": "secret words", "EMPTY": ""})
    file = tmp_path / "0" / "variables"
    assert file.read_text() == "TOKEN=secret words\nEMPTY=\n"
    assert file.stat().st_mode & 0o777 == 0o600
    assert not [word for word in words if "secret" in word]


def test_a_confined_container_has_its_jobs_network_and_the_buckets_of_its_account(tmp_path: Path) -> None:
    for bucket in ("data", "ledger"):
        (tmp_path / "buckets" / bucket).mkdir(parents=True)
    grants = Grants(
        project="p1",
        project_number="1",
        grants=[Grant(member="serviceAccount:a@b", role="viewer", resource="projects/_/buckets/data")],
        roles={"viewer": frozenset({"storage.objects.get"})},
        buckets=("data", "ledger"),
    )
    here = replace(HERE, buckets=tmp_path / "buckets", grants=grants)
    network = Network(user=7, net=8, listeners=())
    words = argv(tmp_path, PoolContainer(image="i"), containers=here, account="a@b", network=network)
    assert words[words.index("--network") + 1] == f"ns:/proc/{os.getpid()}/fd/8"
    assert [word for word in words if word.startswith("--volume")] == [
        f"--volume={tmp_path}/buckets/data:/gcs/data:ro"
    ]


def test_the_replicas_identity_and_the_authority_it_trusts_go_into_the_container(tmp_path: Path) -> None:
    trust = Authority(tmp_path / "gateway").trust
    variables, token = asyncio.run(_issued(trust))
    words = argv(tmp_path, PoolContainer(image="i"), variables, trust=trust)
    lines = (tmp_path / "0" / "variables").read_text().splitlines()
    assert dict(line.split("=", 1) for line in lines) == variables
    assert f"--volume={trust}:{trust}:ro" in words
    assert (
        words[words.index("--network") + 1] == "host"
    )  # the gateway and the metadata server are on loopback
    named = [Path(value) for value in variables.values() if value.startswith("/")]
    assert named
    assert all(path.exists() and path.is_relative_to(trust) for path in named)
    assert not [word for word in words if token in word]


async def _issued(trust: Path) -> tuple[dict[str, str], str]:
    """The variables of a replica's identity, and the token in them."""
    identities = WorkloadIdentities(
        tokens=Tokens(), project_id="p", project_number="1", gateway_port=1, trust=trust
    )
    principal = Principal(kind="replica", name="1/workerpool0-0", email="a@p")
    identity = await identities.issue(principal, zone="us-central1-a")
    await identities.revoke(identity)
    return dict(identity.variables), identity.token


def test_a_command_replaces_the_entry_point_and_args_follow_the_image(tmp_path: Path) -> None:
    words = argv(tmp_path, PoolContainer(image="i:1", command=("python", "-m", "a b"), args=("--x", "")))
    assert f"--entrypoint={json.dumps(['python', '-m', 'a b'])}" in words
    assert words[-3:] == ["i:1", "--x", ""]
    assert not [
        word for word in argv(tmp_path, PoolContainer(image="i:1")) if word.startswith("--entrypoint")
    ]


@pytest.mark.parametrize(
    ("uri", "mirrored"),
    [
        ("us-central1-docker.pkg.dev/p/r/i:1", "127.0.0.1:5000/p/r/i:1"),
        ("us-central1-docker.pkg.dev/p/r/i", "127.0.0.1:5000/p/r/i"),
        (f"us-central1-docker.pkg.dev/p/r/i@{DIGEST}", f"127.0.0.1:5000/p/r/i@{DIGEST}"),
        (f"gcr.io/p/i:1@{DIGEST}", f"127.0.0.1:5000/p/i@{DIGEST}"),
        ("localhost/i:1", "127.0.0.1:5000/i:1"),
        ("p/i:1", "127.0.0.1:5000/p/i:1"),
        ("i", "127.0.0.1:5000/i"),
    ],
)
def test_the_local_registry_stands_in_for_any_registry(uri: str, mirrored: str) -> None:
    assert mirrored_name(uri, "127.0.0.1:5000") == mirrored
