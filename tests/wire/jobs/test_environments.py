"""What a job may ask for by variables that only the local stack reads."""

import json
import socket
from typing import Any

import pytest

from .conftest import Stack, container

LEGACY = [{"name": "TRAINMASTER_REPLICA_ENVIRONMENT", "value": "ai_platform"}]
TWO_PORTS = [{"name": "TRAINMASTER_OPEN_PORTS", "value": "2"}]


def variable(stack: Stack, name: str, task: str, variable: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(stack.told(name, task)["environ"][variable])
    return found


def test_ai_platforms_environment_is_set_where_it_is_asked_for_also_for_one_replica(stack: Stack) -> None:
    job = stack.submit(container("tell", env=LEGACY))
    stack.ended(job.name)
    for name in ("TF_CONFIG", "CLUSTER_SPEC"):
        found = variable(stack, job.name, "workerpool0-0", name)
        assert list(found["cluster"]) == ["master"]
        assert found["task"] == {
            "type": "master", "index": 0, "trial": "", "cloud": f"{job.name.rpartition('/')[2]}-workerpool0-0",
        }  # fmt: skip
        assert found["job"]["worker_pool_specs"][0]["container_spec"]["args"] == ["tell"]


def test_vertex_ais_environment_can_be_asked_for_by_name(stack: Stack) -> None:
    env = [{"name": "TRAINMASTER_REPLICA_ENVIRONMENT", "value": "vertex"}]
    job = stack.submit(container("tell", env=env))
    stack.ended(job.name)
    assert "TF_CONFIG" not in stack.told(job.name)["environ"]


def test_open_ports_are_free_and_each_replicas_own_and_stay_when_it_starts_again(stack: Stack) -> None:
    (stack.buckets / "b").mkdir()
    workers = container("tell", "write=b/other@workerpool1-1", "die_once=9,b/died@workerpool1-0",
                        "write=b/done@workerpool1-0", "sleep=600", replicas=2, env=TWO_PORTS)  # fmt: skip
    job = stack.submit(container("tell", "wait=b/done", "wait=b/other"), workers)
    assert stack.ended(job.name).state.name == "JOB_STATE_SUCCEEDED"
    assert "open_ports" not in variable(stack, job.name, "workerpool0-0", "CLUSTER_SPEC")
    specs = [
        json.loads(entry["jsonPayload"]["environ"]["CLUSTER_SPEC"])
        for task in ("workerpool1-0", "workerpool1-1")
        for entry in stack.logged(job.name, task)
        if "environ" in entry.get("jsonPayload", {})
    ]
    first, again, other = (spec["open_ports"] for spec in specs)
    assert first == again
    addresses = [int(one.rpartition(":")[2]) for members in specs[0]["cluster"].values() for one in members]
    assert len({*first, *other, *addresses}) == 2 + 2 + 3
    for port in (*first, *other):
        socket.create_server(("127.0.0.1", port)).close()


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("TRAINMASTER_REPLICA_ENVIRONMENT", "legacy", "it is one of vertex, ai_platform."),
        ("TRAINMASTER_OPEN_PORTS", "many", "it is a number from 0 to 16"),
        ("TRAINMASTER_OPEN_PORTS", "17", "it is a number from 0 to 16"),
        ("TRAINMASTER_OPEN_PORTS", "-1", "it is a number from 0 to 16"),
    ],
)
def test_a_wrong_value_fails_the_job_with_what_is_allowed(
    stack: Stack, name: str, value: str, allowed: str
) -> None:
    pool = container("tell", env=[{"name": name, "value": value}])
    ended = stack.ended(stack.submit(container("tell"), pool).name)
    assert ended.state.name == "JOB_STATE_FAILED"
    assert ended.error.message.startswith(f"Worker pool 1 sets {name} to {value!r}; {allowed}")


def test_everything_that_cannot_be_run_is_told_at_once(stack: Stack) -> None:
    wrong = container(image="gcr.io/p/unknown:1")
    legacy = container("tell", env=[{"name": "TRAINMASTER_OPEN_PORTS", "value": "x"}])
    ended = stack.ended(stack.submit(wrong, legacy, wrong).name)
    assert ended.error.message.splitlines() == [
        "Failed to read the container uri [gcr.io/p/unknown:1]. Please make sure that the image exists.",
        (
            "Worker pool 1 sets TRAINMASTER_OPEN_PORTS to 'x'; it is a number from 0 to 16: "
            "how many ports each of its replicas has beside its address."
        ),
    ]
