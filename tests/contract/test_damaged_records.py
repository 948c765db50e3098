"""No request or trainer can make a record unreadable; a record that is damaged anyway is reported."""

import json
from datetime import timedelta

import pytest

from tests.contract.rooms import ends, launched, limited, states
from tests.contract.world import LEDGER, MODELS, World
from tests.narrowing import present
from trainmaster.orchestrator.core.completion.model import SHOWN_FILES
from trainmaster.orchestrator.core.documents.codec import encoded, json_bytes
from trainmaster.orchestrator.core.policy.admission import Limit
from trainmaster.orchestrator.core.runs.job import JobState
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.core.sizes import (
    KIB,
    MAX_MANIFEST_BYTES,
    MAX_RECORD_BYTES,
    MAX_STATUS_BYTES,
)
from trainmaster.orchestrator.flows.lifecycle.slots import ORPHAN_AGE

DEEP = b'{"a":' * 100_000 + b"1" + b"}" * 100_000


def damage(world: World, run_id: str, content: bytes = b"[") -> None:
    world.objects.write(LEDGER, f"runs/{run_id}.json", content, if_generation=None)


def ended_with_manifest(manifest: bytes) -> tuple[World, RunRecord]:
    """A run whose trainer wrote this manifest."""
    world = World()
    run_id = launched(world)
    job = world.train(world.record(run_id))
    (name,) = [each.name for each in world.objects.listing(MODELS, "") if each.name.endswith("export.json")]
    world.objects.write(MODELS, name, manifest, if_generation=None)
    world.complete(world.hint(job))
    assert states(world, run_id) == ["succeeded"]
    return world, world.record(run_id)


def test_every_reconcile_pass_reports_a_damaged_record_with_its_repair(world: World) -> None:
    run_id, other = launched(world), launched(world)
    damage(world, run_id)
    world.train(world.record(other))
    for _ in range(2):
        (told,) = [each for each in world.reconcile() if each.run_id == run_id]
        assert told.severity == "ERROR"
        assert "is not a valid run record" in told.message
        assert "Restore an earlier generation" in told.message
    assert world.record(other).state is RunState.SUCCEEDED
    world.objects.delete(LEDGER, f"runs/{run_id}.json")
    world.reconcile_after(ORPHAN_AGE)
    assert world.active() == [], "a deleted one is forgotten, as the message says"


def test_the_slot_of_a_damaged_record_is_kept_only_while_its_job_is_active() -> None:
    world = limited(Limit(jobs=1))
    damaged = launched(world)
    (job,) = world.jobs.all()
    damage(world, damaged)
    waits = launched(world)
    world.reconcile_after(ORPHAN_AGE + timedelta(hours=1))
    assert states(world, waits) == ["waiting"], "the job of the damaged record is still running"
    world.jobs.become(job.name, JobState.SUCCEEDED)
    world.reconcile_after(timedelta(minutes=1))
    assert states(world, waits) == ["submitted"]


def test_the_slot_of_a_damaged_record_without_a_job_is_kept_as_long_as_its_event_may_come_again() -> None:
    world = limited(Limit(jobs=1))
    damaged = "damaged-20260301t120000-0000000000"
    world.services().slots.take("all", 0, damaged)
    damage(world, damaged)
    waits = launched(world)
    world.reconcile()
    assert states(world, waits) == ["waiting"]
    world.reconcile_after(ORPHAN_AGE + timedelta(hours=1))
    assert states(world, waits) == ["submitted"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (DEEP, "nested deeper than 64 levels"),
        (bytes(MAX_RECORD_BYTES + 1), f"more than {MAX_RECORD_BYTES} bytes"),
    ],
    ids=["deep", "large"],
)
def test_a_deep_or_large_record_is_damaged_like_any_other(world: World, content: bytes, words: str) -> None:
    run_id = launched(world)
    damage(world, run_id, content)
    (told,) = [each for each in world.reconcile() if each.run_id == run_id]
    assert (told.severity, told.message.count(words)) == ("ERROR", 1)


@pytest.mark.parametrize("content", [DEEP, bytes(MAX_STATUS_BYTES + 1)], ids=["deep", "large"])
def test_an_unreadable_status_is_replaced(world: World, content: bytes) -> None:
    run_id = launched(world)
    (status,) = [each.name for each in world.objects.listing(LEDGER, "status/")]
    world.objects.write(LEDGER, status, content, if_generation=None)
    ends(world, run_id)
    assert world.document(status)["state"] == "succeeded"


@pytest.mark.parametrize("text", ["x\\ud800", "\\udfff"])
def test_a_manifest_with_a_lone_surrogate_ends_its_run_with_a_readable_record(text: str) -> None:
    manifest = f'{{"dataset": {{"name": "{text}"}}, "metrics": {{"{text}": 1}}}}'
    world, record = ended_with_manifest(manifest.encode())
    assert world.active() == []
    assert record.model is not None
    assert present(record.model.dataset).name == next(iter(record.model.metrics))
    str(record).encode()  # every command can print it
    assert [each.type for each in world.notices.published][-1] == "trainmaster.run.succeeded.v1"


def test_a_manifest_with_200_000_unknown_keys_leaves_a_small_record() -> None:
    manifest = json.dumps({f"key{number}": 1 for number in range(200_000)}).encode()
    assert len(manifest) < MAX_MANIFEST_BYTES
    _, record = ended_with_manifest(manifest)
    assert record.model is not None
    assert len(record.problems) <= SHOWN_FILES + 1
    assert len(json_bytes(encoded(record))) < 100 * KIB
