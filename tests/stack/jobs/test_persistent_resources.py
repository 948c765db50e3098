"""Persistent resources: their machines stay between jobs, and the jobs on them wait for no others."""

import functools
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from google.api_core import exceptions
from google.cloud.aiplatform_v1.services.persistent_resource_service import PersistentResourceServiceClient
from google.cloud.aiplatform_v1.types import PersistentResource

from tests.stack.injections.conftest import ask

from . import conftest
from .conftest import PARENT, Stack, container

pytestmark = pytest.mark.slow  # the client first asks after an operation when a second has passed

HELD = "wait=staging/never"
STATE = PersistentResource.State


def resource(count: int = 1, machine: str = "n1-standard-4", **more: Any) -> PersistentResource:
    pool = {"machine_spec": {"machine_type": machine}, "replica_count": count}
    return PersistentResource({"resource_pools": [pool], **more})


client_of = functools.partial(conftest.client, PersistentResourceServiceClient)


@pytest.fixture
def client(stack: Stack) -> Any:
    return client_of(stack)


def create(client: PersistentResourceServiceClient, resource_id: str = "pool", **fields: Any) -> Any:
    return client.create_persistent_resource(
        parent=PARENT, persistent_resource=resource(**fields), persistent_resource_id=resource_id
    )


def test_it_is_made_resized_and_deleted_by_operations(client: PersistentResourceServiceClient) -> None:
    creating = create(client, display_name="for short runs", labels={"a": "b"})
    (listed,) = client.list_persistent_resources(parent=PARENT)
    assert (listed.state, creating.done()) == (STATE.PROVISIONING, False)
    made = creating.result(timeout=30)
    assert (made.state, made.display_name, bool(made.start_time)) == (STATE.RUNNING, "for short runs", True)
    made.resource_pools[0].replica_count = 2
    mask = {"paths": ["resource_pools.replica_count"]}
    resizing = client.update_persistent_resource(persistent_resource=made, update_mask=mask)
    assert client.get_persistent_resource(name=made.name).state == STATE.UPDATING
    assert resizing.result(timeout=30).resource_pools[0].replica_count == 2
    client.delete_persistent_resource(name=made.name).result(timeout=30)
    assert list(client.list_persistent_resources(parent=PARENT)) == []


def test_a_job_starts_on_its_machines_while_the_region_has_none_left(
    stack: Stack, client: PersistentResourceServiceClient
) -> None:
    quota = {"quotas": {"us-central1": {"n1-*": 1}}}
    httpx.put(f"{stack.url}/emulator/v1/quota", json=quota, timeout=60).raise_for_status()
    ask(stack.url, {"name": "s", "at": "vertex.jobs", "kind": "stockout"})
    name = create(client).result(timeout=30).name
    with pytest.raises(exceptions.TooManyRequests):
        stack.submit(container("print=x"))
    first, second = (stack.submit(container(HELD), persistent_resource_id="pool") for _ in range(2))
    stack.until(first.name, lambda job: job.state.name == "JOB_STATE_RUNNING")
    assert stack.until(second.name, lambda _: True).state.name == "JOB_STATE_QUEUED"
    assert client.get_persistent_resource(name=name).resource_pools[0].used_replica_count == 1
    stack.jobs.cancel_custom_job(name=first.name)
    stack.until(second.name, lambda job: job.state.name == "JOB_STATE_RUNNING")


def test_its_jobs_are_cancelled_when_it_is_deleted(
    stack: Stack, client: PersistentResourceServiceClient
) -> None:
    name = create(client).result(timeout=30).name
    job = stack.submit(container(HELD), persistent_resource_id="pool")
    deleting = client.delete_persistent_resource(name=name)
    with pytest.raises(exceptions.BadRequest, match="STOPPING"):
        stack.submit(container("print=x"), persistent_resource_id="pool")
    deleting.result(timeout=60)
    assert stack.ended(job.name).state.name == "JOB_STATE_CANCELLED"
    with pytest.raises(exceptions.NotFound, match="does not exist"):
        stack.submit(container("print=x"), persistent_resource_id="pool")


def test_a_job_that_does_not_fit_is_refused_with_every_reason(
    stack: Stack, client: PersistentResourceServiceClient
) -> None:
    create(client).result(timeout=30)
    workers = {**container("print=x", replicas=2), "machine_spec": {"machine_type": "n1-standard-8"}}
    network = "projects/1/global/networks/n"
    with pytest.raises(exceptions.BadRequest) as refused:
        stack.submit(container("print=x"), workers, persistent_resource_id="pool", network=network)
    for reason in ("worker_pool_specs[1].machine_spec", "3 replicas, but", "network: expected"):
        assert reason in str(refused.value)


@pytest.mark.parametrize(
    ("resource_id", "fields", "reason"),
    [
        ("Pool", {"count": 0, "machine": "big"}, "persistent_resource_id: expected"),
        ("p", {"count": 0}, "replica_count: at least 1, found 0"),
        ("p", {"reserved_ip_ranges": ["r"]}, "reservedIpRanges is not imitated"),
        ("p", {"count": 1000}, "quota metrics exceed"),
    ],
)
def test_an_impossible_one_is_refused(
    idle: Stack, resource_id: str, fields: dict[str, Any], reason: str
) -> None:
    with pytest.raises(exceptions.GoogleAPICallError, match=reason):
        create(client_of(idle), resource_id, **fields)


def test_it_is_there_after_a_restart_with_its_machines_and_jobs(start: Callable[..., Any]) -> None:
    with start(capacity=1, grace_s=0.1) as stack:
        create(client_of(stack)).result(timeout=30)
        name = stack.submit(container(HELD), persistent_resource_id="pool").name
        stack.until(name, lambda job: job.state.name == "JOB_STATE_RUNNING")
    with start(capacity=1, grace_s=0.1) as stack:
        stack.until(name, lambda _: "Job is running." in stack.service_lines(name))
        (pool,) = client_of(stack).list_persistent_resources(parent=PARENT)
        assert (pool.state, pool.resource_pools[0].used_replica_count) == (STATE.RUNNING, 1)
        assert stack.submit(container("print=x")).state.name == "JOB_STATE_QUEUED"
