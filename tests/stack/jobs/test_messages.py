"""A job's error in the service's words."""

from datetime import UTC, datetime

import pytest

from trainstack.jobs.replicas.exits import ReplicaEnd
from trainstack.jobs.resource.job import CHIEF, JobReplica, ResourceState, VertexJob
from trainstack.jobs.runners.messages import non_zero_exit, ran_too_long, waited_too_long


def job(**scheduling: object) -> VertexJob:
    pool = {
        "machineSpec": {"machineType": "n1-standard-4"},
        "replicaCount": "1",
        "containerSpec": {"imageUri": "gcr.io/p/i:1"},
    }
    body = {"displayName": "a job", "jobSpec": {"workerPoolSpecs": [pool], "scheduling": scheduling}}
    return VertexJob.parse(
        body,
        project="1",
        location="europe-west4",
        job_id="22",
        at=datetime.now(UTC),
        state=ResourceState.QUEUED,
    )


@pytest.mark.parametrize(
    ("last", "words"),
    [
        (
            ReplicaEnd(replica=CHIEF, status=1),
            "The replica workerpool0-0 exited with a non-zero status of 1. To find",
        ),
        (
            ReplicaEnd(replica=JobReplica(pool=2, index=3), status=134),
            "The replica workerpool2-3 exited with a non-zero status of 134. To find",
        ),
        (
            ReplicaEnd(replica=CHIEF, status=137),
            "The replica workerpool0-0 ran out of memory and exited with a non-zero status of 137(SIGKILL). To find",
        ),
        (
            ReplicaEnd(replica=CHIEF, status=137, preempted=True),
            "The replica workerpool0-0 exited with a non-zero status of 137. To find",
        ),
    ],
)
def test_an_exit_names_its_replica_and_its_status_and_where_to_look(last: ReplicaEnd, words: str) -> None:
    said = non_zero_exit(job(), last)
    assert said.startswith(words)
    assert "project=1&resource=ml_job%2Fjob_id%2F22&advancedFilter=" in said
    assert f"task_name%3D%22{last.replica.name}%22" in said


def test_a_wait_and_a_run_that_are_too_long_name_their_limits() -> None:
    waited = job(strategy="FLEX_START", maxWaitDuration="90s")
    assert waited_too_long(waited) == (
        "Resources are insufficient in region: europe-west4. "
        "None became available within the job's maxWaitDuration of 90s."
    )
    assert ran_too_long(job(timeout="7200s")) == "CANCELED: the job ran longer than its timeout of 7200 s."


@pytest.mark.parametrize(
    ("scheduling", "max_wait_s"),
    [
        ({}, None),
        ({"maxWaitDuration": "60s"}, None),  # only a flexible start has a limit
        ({"strategy": "SPOT", "maxWaitDuration": "60s"}, None),
        ({"strategy": "FLEX_START"}, 24 * 3600),
        ({"strategy": "FLEX_START", "maxWaitDuration": "0s"}, None),  # forever
        ({"strategy": "FLEX_START", "maxWaitDuration": "60s"}, 60),
    ],
)
def test_only_a_flexible_start_has_a_longest_wait(
    scheduling: dict[str, object], max_wait_s: int | None
) -> None:
    found = job(**scheduling).max_wait
    assert (found.total_seconds() if found else None) == max_wait_s
