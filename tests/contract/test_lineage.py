"""A champion is traced back, object by object, to the dropped file: in memory and over real sockets."""

import hashlib
import json

import pytest

from tests.contract.schemas import CHAMPION
from tests.contract.world import CHAMPIONS, INBOX, LEDGER, MODELS, REQUEST, World
from trainmaster.orchestrator.adapters.gcs import GcsObjects
from trainmaster.orchestrator.core.names import RUN_LABEL, split_object_uri
from trainmaster.orchestrator.core.sizes import MIB
from trainmaster.orchestrator.stores.ledger import Ledger

DIGEST = "sha256:" + "ab" * 32
CHALLENGE = REQUEST.replace(b"trainer:latest", f"trainer@{DIGEST}".encode()) + (
    b"champion: {metric: accuracy, goal: maximize}\n"
)


@pytest.fixture(params=["memory", "gcs"])
def world(request: pytest.FixtureRequest) -> World:
    """A deployment with its objects in memory, or behind Cloud Storage's client and the emulator."""
    made = World()
    if request.param == "gcs":
        objects: GcsObjects = request.getfixturevalue("gcs")
        for bucket in (INBOX, LEDGER, MODELS, CHAMPIONS):
            objects._client.create_bucket(bucket)
        made.objects = objects  # type: ignore[assignment]  # any object store works here, as no test reads its metadata
        made.ledger = Ledger(objects, LEDGER)
    return made


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
