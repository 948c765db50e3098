"""Refusals of Vertex AI, Cloud Logging and Pub/Sub for missing permissions, and their sentences."""

from pathlib import Path

import grpc
import pytest
from google.iam.v1 import iam_policy_pb2, policy_pb2
from google.pubsub_v1 import types

from tests.stack.services import deployed_grants
from trainstack.http import in_thread

from .conftest import (
    JOBS,
    LEDGER,
    PROJECT,
    REGION,
    STRANGER,
    TICK,
    TRAINER,
    Served,
    call_pubsub,
    denied,
    email,
    running,
)


def test_vertex_ai_names_the_permission_and_the_resource(served: Served) -> None:
    place = f"projects/{PROJECT}/locations/{REGION}"
    created = served.call("POST", "vertex", f"/v1/{JOBS}", TRAINER, json={})
    permission = "aiplatform.customJobs.create"
    assert denied(created) == (
        f"Permission '{permission}' denied on resource '//aiplatform.googleapis.com/{place}' (or it may not exist)."
    )
    (info,) = created.json()["error"]["details"]
    assert (info["reason"], info["domain"]) == ("IAM_PERMISSION_DENIED", "aiplatform.googleapis.com")
    assert info["metadata"] == {"permission": permission, "resource": place}
    cancelled = served.call("POST", "vertex", f"/v1/{JOBS}/7:cancel", TRAINER, json={})
    assert f"'//aiplatform.googleapis.com/{JOBS}/7'" in denied(cancelled)


def job(account: str) -> dict[str, object]:
    pool = {
        "machineSpec": {"machineType": "n1-standard-4"},
        "replicaCount": "1",
        "containerSpec": {"imageUri": "image"},
    }
    spec = {"workerPoolSpecs": [pool], **({"serviceAccount": account} if account else {})}
    return {"displayName": "job", "jobSpec": spec}


def test_a_job_runs_only_as_an_account_that_its_creator_may_act_as(served: Served) -> None:
    for account in (email("tm-on-tick"), email("tm-build"), "someone@elsewhere.iam.gserviceaccount.com"):
        refused = served.call("POST", "vertex", f"/v1/{JOBS}", TICK, json=job(account))
        assert refused.status_code == 400
        assert refused.json()["error"] == {
            "code": 400,
            "message": f"You do not have permission to act as service_account: {account}. (or it may not exist).",
            "status": "INVALID_ARGUMENT",
        }
    assert served.call("POST", "vertex", f"/v1/{JOBS}", TICK, json=job(email(TRAINER))).status_code == 200


def test_a_project_may_be_named_by_its_number(served: Served) -> None:
    by_number = f"/v1/projects/{served.grants.project_number}/locations/{REGION}/customJobs"
    assert served.call("GET", "vertex", by_number, TICK).status_code == 200
    elsewhere = by_number.replace(served.grants.project_number, "111111111111")
    assert denied(served.call("GET", "vertex", elsewhere, TICK))


def entries(*projects: str) -> dict[str, object]:
    written = [{"logName": f"projects/{each}/logs/a", "textPayload": "a"} for each in projects]
    return {"entries": written, "resource": {"type": "global"}}


def test_logging_refuses_a_write_to_any_project_without_the_permission(served: Served) -> None:
    assert served.call("POST", "logging", "/v2/entries:write", TRAINER, json=entries(PROJECT)).is_success
    for account, projects in ((TICK, [PROJECT]), (TRAINER, [PROJECT, "other-project"])):
        answer = served.call("POST", "logging", "/v2/entries:write", account, json=entries(*projects))
        permission = "logging.logEntries.create"
        assert denied(answer) == f"Permission '{permission}' denied on resource (or it may not exist)."
        (info,) = answer.json()["error"]["details"]
        assert info["metadata"] == {"permission": permission}


def test_logging_refuses_a_list_without_the_permission(served: Served) -> None:
    names = {"resourceNames": [f"projects/{PROJECT}"]}
    assert served.call("POST", "logging", "/v2/entries:list", TICK, json=names).is_success
    assert "'logging.logEntries.list'" in denied(
        served.call("POST", "logging", "/v2/entries:list", TRAINER, json=names)
    )


def test_a_stream_is_refused_when_it_names_its_subscription(served: Served) -> None:
    first = types.StreamingPullRequest(
        subscription=f"projects/{PROJECT}/subscriptions/s", stream_ack_deadline_seconds=10
    )
    with grpc.insecure_channel(f"127.0.0.1:{served.pubsub}") as channel:
        pull = channel.stream_stream(
            "/google.pubsub.v1.Subscriber/StreamingPull",
            request_serializer=types.StreamingPullRequest.serialize,
        )
        with pytest.raises(grpc.RpcError) as refused:
            next(pull(iter([first]), metadata=[("authorization", served.token(TICK))], timeout=60))
    assert refused.value.code() == grpc.StatusCode.PERMISSION_DENIED


def test_without_enforcement_permissions_are_reported_and_nothing_is_refused(tmp_path: Path) -> None:
    reported = deployed_grants(PROJECT, enforced=False)
    with in_thread(lambda: running(tmp_path, reported)) as served:
        made = served.call(
            "POST", "storage", f"/storage/v1/b?project={PROJECT}", STRANGER, json={"name": LEDGER}
        )
        assert made.status_code == 200
        held = served.call(
            "GET",
            "storage",
            f"/storage/v1/b/{LEDGER}/iam/testPermissions?permissions=storage.objects.get",
            STRANGER,
        )
        assert held.json()["permissions"] == []


def test_a_topics_policy_that_was_set_decides_until_the_topic_is_deleted(served: Served) -> None:
    topic = f"projects/{PROJECT}/topics/shared"
    request = types.PublishRequest(topic=topic, messages=[types.PubsubMessage(data=b"x")])
    for role in ("roles/pubsub.publisher", "roles/pubsub.viewer", None):
        call_pubsub(served, "CreateTopic", types.Topic(name=topic), "")
        if role:
            binding = policy_pb2.Binding(role=role, members=[f"serviceAccount:{email(TICK)}"])
            policy = policy_pb2.Policy(bindings=[binding])
            given = iam_policy_pb2.SetIamPolicyRequest(resource=topic, policy=policy)
            call_pubsub(served, "SetIamPolicy", given.SerializeToString(), "")
        if role == "roles/pubsub.publisher":
            assert call_pubsub(served, "Publish", request, TICK)
        else:
            with pytest.raises(grpc.RpcError, match="not authorized"):
                call_pubsub(served, "Publish", request, TICK)
        call_pubsub(served, "DeleteTopic", types.DeleteTopicRequest(topic=topic), "")
