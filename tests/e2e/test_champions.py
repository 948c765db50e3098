"""Runs that end on a running stack become champion or stay challengers, with notices."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jsonschema
import pytest
from google.api_core.exceptions import DeadlineExceeded

from trainmaster.orchestrator.core.names import split_object_uri
from trainstack.events.clients import clients_of

from .project import ROOT, Project, request

pytestmark = pytest.mark.slow

TERMS = {"metric": "accuracy", "goal": "maximize", "margin": 0.001}


def schema(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((ROOT / "schemas" / f"{name}.schema.json").read_text())
    return loaded


@contextmanager
def notices_of(project: Project) -> Iterator[list[dict[str, Any]]]:
    """What is published to the notices topic meanwhile, complete once the block is left."""
    heard: list[dict[str, Any]] = []
    name = f"projects/{project.id}/subscriptions/heard"
    with clients_of(project.env["PUBSUB_EMULATOR_HOST"]) as clients:
        topic = f"projects/{project.id}/topics/trainmaster-notices"
        clients.subscriber.create_subscription(name=name, topic=topic)
        try:
            yield heard
            while True:
                try:
                    pulled = clients.subscriber.pull(subscription=name, max_messages=100, timeout=6)
                except DeadlineExceeded:
                    break
                if not pulled.received_messages:
                    break
                heard += [json.loads(each.message.data) for each in pulled.received_messages]
                clients.subscriber.acknowledge(
                    subscription=name, ack_ids=[each.ack_id for each in pulled.received_messages]
                )
        finally:
            clients.subscriber.delete_subscription(subscription=name)


def trained(project: Project, name: str, *args: str) -> dict[str, Any]:
    """The run of a request for `ranked`, once every step after its end is done."""
    content = request(project.id, *args, model_name="ranked", champion=TERMS)
    generation = project.upload(f"requests/{name}.yaml", content)
    return project.finished_record(project.final_status(f"requests/{name}.yaml", generation)["run_id"])


def champion(project: Project) -> dict[str, Any]:
    found = project.document(project.ledger, "champions/ranked.json")
    assert found is not None
    jsonschema.validate(found, schema("champion.v1"))
    return found


def contents(project: Project, uri: str) -> dict[str, bytes]:
    """The files of a model by path, without folder markers."""
    bucket, prefix = split_object_uri(uri)
    blobs = project.storage.list_blobs(bucket, prefix=prefix)
    found = {blob.name.removeprefix(prefix): blob.download_as_bytes() for blob in blobs}
    return {path: content for path, content in found.items() if path and not path.endswith("/")}


def test_the_best_run_is_champion_a_worse_one_is_not_and_an_order_goes_back(project: Project) -> None:
    with notices_of(project) as heard:
        poor = trained(project, "poor", "--epochs=5", "--rate=0.05")
        good = trained(project, "good", "--epochs=20")
        worse = trained(project, "worse", "--epochs=8", "--rate=0.1")
        ranked = champion(project)
        assert ranked["current"]["run_id"] == good["run_id"]
        promoted = {each["run_id"]: each["promoted"] for each in ranked["considered"]}
        assert promoted == {poor["run_id"]: True, good["run_id"]: True, worse["run_id"]: False}
        lineage = ranked["current"]["lineage"]
        assert lineage["event_id"] == good["source"]["event_id"]
        assert lineage["job_name"] == good["job"]["name"]
        assert lineage["manifest_sha256"] == good["model"]["manifest_sha256"]

        honest = contents(project, poor["model"]["uri"])
        bucket, name = split_object_uri(poor["model"]["uri"])
        for path in honest:  # as any other job of the team may
            project.storage.bucket(bucket).blob(name + path).upload_from_string(b"hostile")
        project.upload("requests/back.yaml", "rollback: {model_name: ranked}")
        status = project.final_status("requests/back.yaml")
        copy_uri = f"gs://{project.id}-champions/ranked/{poor['run_id']}/"
        assert (status["state"], status["model_uri"]) == ("succeeded", copy_uri)
        assert champion(project)["current"]["run_id"] == poor["run_id"]
        assert contents(project, copy_uri) == honest
    for notice in heard:
        jsonschema.validate(notice, schema("notice.v1"))
    ids = {notice["id"] for notice in heard}
    states = ("reserved", "submitted", "running", "succeeded")
    assert ids >= {f"{run['run_id']}/{state}" for run in (poor, good, worse) for state in states}
    assert ids >= {"champions/ranked/1", "champions/ranked/2", "champions/ranked/3"}
    kinds = {notice["id"]: notice["type"] for notice in heard}
    assert kinds["champions/ranked/2"] == "trainmaster.champion.promoted.v1"
    assert kinds["champions/ranked/3"] == "trainmaster.champion.rolled_back.v1"
