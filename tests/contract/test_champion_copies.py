"""A champion is traced back to what was dropped, and nothing that jobs write afterwards changes what is served."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.contract.boundaries import At, only_at
from tests.contract.proxy import Proxy, ProxyFault
from tests.contract.schemas import CHAMPION
from tests.contract.test_champions import champion, complete, order, run, told, trained, verdict
from tests.contract.world import CHAMPIONS, INBOX, LEDGER, MODELS, REQUEST, Boundary, World
from tests.narrowing import present
from trainmaster.orchestrator.adapters.gcs import GcsObjects
from trainmaster.orchestrator.core.names import RUN_LABEL, split_object_uri
from trainmaster.orchestrator.core.sizes import MIB
from trainmaster.orchestrator.flows.completion import copying
from trainmaster.orchestrator.stores.ledger import Ledger

ROLLBACK = {"rollback": {"model_name": "cassava-resnet50"}}
DIGEST = "sha256:" + "ab" * 32
CHALLENGE = REQUEST.replace(b"trainer:latest", f"trainer@{DIGEST}".encode()) + (
    b"champion: {metric: accuracy, goal: maximize}\n"
)


@pytest.fixture(params=["memory", "gcs"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """A deployment with its objects in memory, or behind Cloud Storage's client and the local stack's server."""
    made = World()
    if request.param == "memory":
        yield made
        return
    objects: GcsObjects = request.getfixturevalue("gcs")
    made.objects = objects  # type: ignore[assignment]  # these tests use only what both have
    made.ledger = Ledger(objects, LEDGER)
    with new_buckets(objects):
        yield made


@contextmanager
def new_buckets(objects: GcsObjects) -> Iterator[None]:
    """The deployment's buckets on a server that other tests use too."""
    buckets = [objects._client.bucket(name) for name in (INBOX, LEDGER, MODELS, CHAMPIONS)]
    for bucket in buckets:
        if bucket.exists():
            bucket.delete(force=True)
        bucket.create()
    yield
    for bucket in buckets:
        bucket.delete(force=True)


def contents(world: World, uri: str) -> dict[str, bytes]:
    """The files below the URI by path."""
    bucket, prefix = split_object_uri(uri)
    return {
        each.name.removeprefix(prefix): world.objects.read(bucket, each.name, max_bytes=MIB).content
        for each in world.objects.listing(bucket, prefix)
    }


def own_uri(world: World, run_id: str) -> str:
    model = present(world.record(run_id).model)
    return model.uri


def rewrite(world: World, uri: str) -> None:
    """What a hostile job of the same team does to every file of another run's model, metrics and manifest."""
    bucket, prefix = split_object_uri(uri)
    for each in list(world.objects.listing(bucket, prefix)):
        world.objects.write(bucket, each.name, b"hostile", if_generation=None)
    world.objects.write(bucket, f"{prefix}metrics.json", b'{"accuracy": 1.0}', if_generation=None)


def test_a_job_that_rewrites_a_promoted_model_changes_nothing_that_is_served(world: World) -> None:
    first, second = run(world, "a", 0.7), run(world, "b", 0.8)
    honest = contents(world, own_uri(world, second))
    before = champion(world)
    for run_id in (first, second):
        rewrite(world, own_uri(world, run_id))
    assert champion(world) == before
    assert before["current"]["model_uri"] == f"gs://{CHAMPIONS}/cassava-resnet50/{second}/"
    assert before["current"]["trained_uri"] == own_uri(world, second)
    assert contents(world, before["current"]["model_uri"]) == honest
    assert set(honest) == {"saved_model.pb", "export.json"}


def test_a_rollback_restores_the_copy_that_no_job_can_change(world: World) -> None:
    first, _ = run(world, "a", 0.7), run(world, "b", 0.8)
    honest = contents(world, own_uri(world, first))
    rewrite(world, own_uri(world, first))
    order(world, ROLLBACK)
    current = champion(world)["current"]
    assert (current["run_id"], current["model_uri"]) == (first, f"gs://{CHAMPIONS}/cassava-resnet50/{first}/")
    assert contents(world, current["model_uri"]) == honest
    assert world.document("status/requests/order.json.json")["model_uri"] == current["model_uri"]


def test_a_model_that_is_rewritten_before_its_promotion_is_never_champion(world: World) -> None:
    """Another job rewrites the model between the end of the run and its promotion."""
    first, incoming = run(world, "a", 0.7), trained(world, "b", 0.9)
    hostile = only_at(1, lambda: rewrite(world, own_uri(world, incoming.run_id)))
    complete(world, incoming, At(f"list {CHAMPIONS}", before=hostile))
    assert champion(world)["current"]["run_id"] == first
    found = verdict(world, incoming.run_id)
    uri = own_uri(world, incoming.run_id)
    assert found["promoted"] is False
    assert found["reason"].startswith(f"accuracy 0.9 beats 0.7, but {uri}saved_model.pb, generation ")
    assert found["reason"].endswith("was replaced or deleted after the run had ended")
    assert champion(world)["considered"][-1]["reason"] == found["reason"]
    (ended,) = [each for each in world.notices.published if each.id == f"{incoming.run_id}/succeeded"]
    assert ended.data["champion"] == found
    assert contents(world, f"gs://{CHAMPIONS}/cassava-resnet50/{incoming.run_id}/") == {}
    assert told(world, "promoted") == ["champions/cassava-resnet50/1"]


def test_a_manifest_that_is_replaced_while_it_is_read_does_not_count(world: World) -> None:
    incoming = trained(world, "a", 0.7)
    place = split_object_uri(f"{world.record(incoming.run_id).output_uri}/model/export.json")
    other = b'{"metrics": {"accuracy": 1.0}}'
    replaced = only_at(1, lambda: world.objects.write(*place, other, if_generation=None))
    complete(world, incoming, At(f"read {MODELS}", before=replaced))
    record = world.record(incoming.run_id)
    assert "export.json was ignored: it was replaced while it was read" in record.problems
    model = present(record.model)
    assert (model.metrics, model.manifest_uri) == ({}, None)
    assert verdict(world, incoming.run_id)["promoted"] is False


def test_every_file_and_document_that_counted_is_on_record_by_generation_and_checksum(world: World) -> None:
    incoming = trained(world, "a", 0.7)
    folder = f"{world.record(incoming.run_id).output_uri}/model/"
    bucket, prefix = split_object_uri(folder)
    world.objects.write(bucket, f"{prefix}metrics.json", b'{"accuracy": 0.75}', if_generation=None)
    live = {each.name.removeprefix(prefix): each for each in world.objects.listing(bucket, prefix)}
    complete(world, incoming)
    model = present(world.record(incoming.run_id).model)
    assert model.files is not None
    assert (model.manifest_generation, model.metrics_generation) == (
        live["export.json"].generation,
        live["metrics.json"].generation,
    )
    listing = world.document(split_object_uri(model.files.listing_uri or "")[1])
    recorded = {
        each["path"]: (each["generation"], each["crc32c"], each["md5"])
        for each in (*listing["files"], *listing["documents"])
    }
    assert recorded == {path: (each.generation, each.crc32c, each.md5) for path, each in live.items()}
    lineage = champion(world)["current"]["lineage"]
    assert lineage["metrics_generation"] == model.metrics_generation
    assert (lineage["files_uri"], lineage["files_sha256"]) == (
        model.files.listing_uri,
        model.files.listing_sha256,
    )


def test_a_copy_whose_answer_was_lost_still_counts(gcs: GcsObjects, storage_proxy: Proxy) -> None:
    """The client repeats the call, and is refused because its own first one made the object."""
    world = World()
    world.objects = gcs  # type: ignore[assignment]  # as above
    world.ledger = Ledger(gcs, LEDGER)
    with new_buckets(gcs):
        incoming = trained(world, "a", 0.7)
        lost = ProxyFault(on=f"POST /storage/v1/b/{MODELS}/o/", lose_answer=True)
        storage_proxy.faults.append(lost)
        complete(world, incoming)
        assert storage_proxy.injected == [lost]
        current = champion(world)["current"]
        assert contents(world, current["model_uri"]) == contents(world, current["trained_uri"])


def test_an_object_in_the_place_of_a_copy_is_neither_replaced_nor_served(world: World) -> None:
    incoming = trained(world, "a", 0.7)
    name = f"cassava-resnet50/{incoming.run_id}/saved_model.pb"
    world.objects.write(CHAMPIONS, name, b"foreign", if_generation=None)
    complete(world, incoming)
    assert f"gs://{CHAMPIONS}/{name} is another object than " in verdict(world, incoming.run_id)["reason"]
    assert "current" not in champion(world)


@pytest.mark.parametrize("files_at_once", [1, 200])
@pytest.mark.parametrize("copied_at_once", [None, 3])
def test_only_a_complete_copy_is_promoted(
    files_at_once: int, copied_at_once: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file may take several calls, and a model several attempts; each attempt continues the one before."""
    monkeypatch.setattr(copying, "FILES_AT_ONCE", files_at_once)
    world = World()
    first, incoming = run_whole(world, "a", 0.7), trained(world, "b", 0.9)
    world.objects.copied_at_once = copied_at_once
    complete(world, incoming)
    attempts = 0
    while verdict(world, incoming.run_id) is None:
        assert champion(world)["current"]["run_id"] == first
        assert f"{incoming.run_id}/succeeded" not in {each.id for each in world.notices.published}
        assert world.active() == [incoming.run_id]
        world.reconcile()
        attempts += 1
        assert attempts < 500
    assert (attempts > 0) == (files_at_once == 1 or copied_at_once is not None)
    current = champion(world)["current"]
    assert current["run_id"] == incoming.run_id
    assert contents(world, current["model_uri"]) == contents(world, own_uri(world, incoming.run_id))
    completion = present(world.record(incoming.run_id).completion)
    assert completion.long_copy is None
    world.reconcile()
    assert world.active() == []


def run_whole(world: World, name: str, accuracy: float) -> str:
    """A run, once every step after its end is done."""
    run_id = run(world, name, accuracy)
    while world.active():
        world.reconcile()
    return run_id


def test_a_challenger_that_is_overtaken_while_its_model_is_copied_is_not_promoted() -> None:
    world = World()
    slow, fast = trained(world, "slow", 0.8), trained(world, "fast", 0.9)
    overtakes = only_at(1, lambda: complete(world, fast))
    complete(world, slow, At(f"copy to {CHAMPIONS}", before=overtakes))
    assert [each["run_id"] for each in champion(world)["history"]] == [fast.run_id]
    assert verdict(world, slow.run_id)["compared_with"] == fast.run_id


def test_a_run_that_does_not_win_copies_nothing() -> None:
    world = World()
    run(world, "a", 0.9)
    incoming, boundary = trained(world, "b", 0.7), Boundary()
    complete(world, incoming, boundary)
    assert not {f"copy to {CHAMPIONS}", f"list {CHAMPIONS}"} & set(boundary.calls)
    assert not [*world.objects.listing(CHAMPIONS, f"cassava-resnet50/{incoming.run_id}/")]


def test_a_champion_leads_back_to_what_was_dropped(world: World) -> None:
    incoming = world.drop_and_launch(CHALLENGE)
    job = world.train(world.record(incoming.run_id))
    world.complete(world.hint(job))

    champion = world.document("champions/cassava-resnet50.json")
    CHAMPION.validate(champion)
    reign = champion["current"]
    lineage = reign["lineage"]

    manifest = world.objects.read(*split_object_uri(lineage["manifest_uri"]), max_bytes=MIB).content
    assert hashlib.sha256(manifest).hexdigest() == lineage["manifest_sha256"]
    assert json.loads(manifest)["dataset"]["name"] == lineage["dataset"] == reign["contest"]["dataset"]
    assert json.loads(manifest)["dataset"]["version"] == lineage["dataset_version"]
    assert lineage["manifest_uri"] == reign["model_uri"] + "export.json"

    trained = world.jobs.read(lineage["job_name"])
    assert trained.labels[RUN_LABEL] == reign["run_id"]
    assert lineage["image_digest"] == DIGEST
    assert lineage["image"].endswith(f"@{DIGEST}")

    bucket, name = split_object_uri(lineage["request_uri"])
    dropped = world.objects.read(bucket, name, lineage["request_generation"], max_bytes=MIB)
    assert dropped.content == CHALLENGE
    record = world.document(f"runs/{reign['run_id']}.json")
    assert record["source"]["event_id"] == lineage["event_id"]
    assert record["source"]["event_time"] == lineage["event_time"]
