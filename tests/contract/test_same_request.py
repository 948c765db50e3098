"""What people's tools do with a file starts a second run only where that is meant; a key names one document."""

import base64
import json
from datetime import timedelta

import pytest
import yaml

from tests.contract.boundaries import At, dies_after, raising
from tests.contract.index import index_rows
from tests.contract.retraining import MANUAL, RuleWorld, rule
from tests.contract.schemas import RECORD, REPORT, STATUS
from tests.contract.world import INBOX, OBJECT, REQUEST, Boundary, Killed, World
from tests.narrowing import present
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.errors import ObjectGone, ServiceFailed
from trainmaster.orchestrator.core.requests.incoming import IncomingDocument
from trainmaster.orchestrator.core.runs.states import RunState
from trainmaster.orchestrator.flows.intake import take_and_admit


def states(world: World) -> list[str]:
    """Of every run, rejected ones included."""
    return [row.state for row in index_rows(world.objects)]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_saves_of_the_same_bytes_before_the_first_is_read_are_one_request(order: tuple[int, ...]) -> None:
    world = World()
    saves = [world.drop() for _ in range(3)]
    for number in order:
        world.launch(saves[number])
    world.reconcile()
    assert states(world) == [RunState.SUBMITTED]
    assert world.record(saves[2].run_id).state is RunState.SUBMITTED
    assert {notice.data["state"] for notice in world.notices.published} == {"reserved", "submitted"}


def test_a_save_of_the_same_bytes_between_the_description_and_the_download_is_the_same_request() -> None:
    world = World()
    incoming = world.drop()
    result = world.launch(incoming, At("read inbox", before=world.drop))
    assert "overwritten with the same content" in result.message
    assert states(world) == []


@pytest.mark.parametrize("newer", [REQUEST + b"# changed\n", REQUEST[:-1] + b" "])
def test_a_save_of_other_bytes_before_the_first_is_read_is_reported(world: World, newer: bytes) -> None:
    first, second = world.drop(), world.drop(newer)
    world.launch(first)
    world.launch(second)
    assert sorted(states(world)) == [RunState.REJECTED, RunState.SUBMITTED]
    assert "overwritten" in world.record(first.run_id).problems[0]


def test_an_overwritten_file_whose_event_has_no_checksum_is_reported(world: World) -> None:
    first = world.drop()
    world.drop()
    world.launch(world.uploaded(OBJECT, first.source.generation or 0, len(REQUEST)))
    assert states(world) == [RunState.REJECTED]


def test_the_event_of_a_run_finds_it_after_the_same_bytes_were_saved_again(world: World) -> None:
    first = world.drop_and_launch()
    world.drop(REQUEST + b"# changed\n")
    world.objects.delete("ledger", f"status/{OBJECT}.json")  # as if its process had crashed
    assert world.launch(first).run_id == first.run_id
    assert states(world) == [RunState.SUBMITTED]
    assert world.objects.describe(INBOX, OBJECT).size_bytes > len(REQUEST)


def saved(
    world: World, after_s: float, content: bytes = REQUEST, upload_id: str | None = None
) -> IncomingDocument:
    """The request saved again so much later, by the call of `trainmaster submit` with that id, if any."""
    world.clock.advance(timedelta(seconds=after_s))
    return world.drop(content, upload_id=upload_id)


def test_saves_of_the_same_bytes_within_a_minute_are_one_request_and_the_status_says_so(world: World) -> None:
    first = world.drop_and_launch()
    for after_s in (1, 29, 30):
        again = saved(world, after_s)
        for _ in range(2):
            assert world.launch(again).run_id == first.run_id
    world.complete(world.hint(world.train(world.record(first.run_id))))
    status = world.document(f"status/{OBJECT}.json")
    STATUS.validate(status)
    assert (status["run_id"], status["state"]) == (first.run_id, "succeeded")
    assert (status["generation"], status["repeated_by"]) == (first.source.generation, again.source.generation)
    assert states(world) == [RunState.SUCCEEDED]


@pytest.mark.parametrize(
    ("after_s", "content", "upload_id"), [(61, REQUEST, None), (1, REQUEST + b"\n", None), (1, REQUEST, "b")]
)
def test_a_later_upload_other_bytes_and_another_submission_start_a_run(
    world: World, after_s: float, content: bytes, upload_id: str | None
) -> None:
    world.launch(saved(world, 0, upload_id=upload_id and "a"))
    world.launch(saved(world, after_s, content, upload_id))
    assert states(world) == [RunState.SUBMITTED] * 2


@pytest.mark.parametrize("after_s", [1, 100_000])
def test_a_rewrite_of_a_submitted_file_starts_no_run_whenever_it_is(world: World, after_s: float) -> None:
    world.launch(saved(world, 0, upload_id="a"))
    world.launch(saved(world, after_s, upload_id="a"))
    assert states(world) == [RunState.SUBMITTED]


def test_a_save_after_the_run_was_cancelled_is_another_try_and_its_own_repetition_is_not() -> None:
    world = World()
    first = world.drop_and_launch()
    repeated = saved(world, 1)
    world.launch(repeated)
    world.jobs.cancel(present(world.record(first.run_id).job).name)
    world.reconcile()
    world.launch(repeated)
    assert states(world) == [RunState.CANCELLED]
    world.launch(saved(world, 1))
    assert sorted(states(world)) == [RunState.CANCELLED, RunState.SUBMITTED]


def test_a_rejected_request_saved_three_times_is_rejected_once(world: World) -> None:
    for _ in range(3):
        world.launch(saved(world, 1, b"model_name: 1"))
    assert states(world) == [RunState.REJECTED]


def test_a_repetition_that_other_bytes_overwrote_before_it_was_read_is_not_reported(world: World) -> None:
    world.drop_and_launch()
    repeated, changed = saved(world, 1), saved(world, 1, OTHER)
    world.launch(repeated)
    world.launch(changed)
    assert states(world) == [RunState.SUBMITTED] * 2


def test_a_repetition_costs_two_reads_and_one_write(world: World) -> None:
    world.drop_and_launch()
    boundary = Boundary()
    world.launch(saved(world, 1), boundary)
    assert boundary.calls == ["read ledger", "describe inbox", "write status"]


@pytest.mark.parametrize(("rule_id", "reports"), [("cassava", 0), ("unknown", 1)])
def test_an_order_saved_three_times_is_carried_out_or_refused_once(rule_id: str, reports: int) -> None:
    world = RuleWorld()
    world.drop_rule(rule(MANUAL))
    order = b"{fire: {rule: %s}}" % rule_id.encode()
    results = [world.launch(saved(world, 1, order)) for _ in range(3)]
    assert [result.message.endswith("the same content") for result in results] == [False, True, True]
    assert len(list(world.objects.listing("ledger", "rejected/"))) == reports
    assert len(world.jobs.all()) == 1 - reports


def keyed(world: World, content: bytes, message_id: str, key: str = "daily") -> IncomingDocument:
    data = base64.b64encode(content).decode()
    message = {"data": data, "messageId": message_id, "attributes": {"idempotency_key": key}}
    return world.published(message)


OTHER = REQUEST.replace(b"cassava-resnet50", b"cassava-vit")
SAME_DOCUMENT = json.dumps(dict(reversed(yaml.safe_load(REQUEST).items()))).encode()


def test_a_message_with_the_key_of_another_document_is_rejected_and_the_first_run_stays(world: World) -> None:
    first, second = keyed(world, REQUEST, "1"), keyed(world, OTHER, "2")
    world.launch(first)
    record, status = world.record(first.run_id), world.document("status/keys/daily.json")
    STATUS.validate(status)
    for _ in range(2):
        result = world.launch(second)
    rejected = world.record(result.run_id or "")
    RECORD.validate(encoded(rejected))
    assert rejected.state is RunState.REJECTED
    assert "named another document before: message-key-" in rejected.problems[0]
    assert world.record(first.run_id) == record
    assert world.document("status/keys/daily.json") == status
    refusal = world.document("status/messages/2.json")
    STATUS.validate(refusal)
    assert (refusal["state"], refusal["run_id"]) == ("rejected", rejected.run_id)
    REPORT.validate(world.document(f"rejected/{rejected.run_id}.json"))
    world.reconcile()
    assert f"{rejected.run_id}/rejected" in [notice.id for notice in world.notices.published]
    assert len(world.jobs.all()) == 1


def test_a_message_with_the_same_key_and_document_costs_two_reads_whatever_its_formatting() -> None:
    world = World()
    world.launch(keyed(world, REQUEST, "1"))
    for content in (REQUEST, SAME_DOCUMENT):
        boundary = Boundary()
        world.launch(keyed(world, content, "2"), boundary)
        assert boundary.calls == ["read ledger", "read ledger"]
    assert len(states(world)) == 1


@pytest.mark.parametrize("second", [OTHER, b"model_name: 1"])
def test_another_document_is_rejected_even_if_the_first_run_has_no_status_yet(second: bytes) -> None:
    world = World()
    first = keyed(world, REQUEST, "1")
    with pytest.raises(Killed):
        world.launch(first, dies_after("write runs"))
    world.launch(keyed(world, second, "2"))
    assert "another document" in world.document("status/messages/2.json")["reason"]
    assert world.record(first.run_id).state is RunState.RESERVED


def test_another_document_is_rejected_while_the_status_says_only_that_the_first_is_tried_again() -> None:
    world = World()
    first, second = keyed(world, b"model_name: 1", "1"), keyed(world, REQUEST, "2")
    fails = At("write index", before=raising(ServiceFailed("storage", "write", "it is not available")))
    with pytest.raises(ServiceFailed):
        list(take_and_admit(world.services(fails), first))
    assert "content_id" not in world.document("status/keys/daily.json")
    (result,) = take_and_admit(world.services(), second)
    assert result.run_id != first.run_id
    assert "another document" in world.document("status/messages/2.json")["reason"]
    world.launch(first)
    assert world.document("status/keys/daily.json")["state"] == "rejected"


@pytest.mark.parametrize("second", [b"{rollback: {model_name: other}}", REQUEST])
def test_the_key_of_an_order_names_that_order_alone(world: World, second: bytes) -> None:
    run = world.drop_and_launch()
    order = b"{cancel: {run: %s}}" % run.run_id.encode()
    for _ in range(2):
        world.launch(keyed(world, order, "1"))
    world.launch(keyed(world, second, "2"))
    assert world.document("status/keys/daily.json")["state"] == "succeeded"
    assert world.document("status/messages/2.json")["state"] == "rejected"
    assert len(world.jobs.all()) == 1


def test_a_rejected_request_keeps_its_key(world: World) -> None:
    first = keyed(world, b"model_name: 1", "1")
    world.launch(first)
    world.launch(keyed(world, REQUEST, "2"))
    assert "another document" in world.document("status/messages/2.json")["reason"]
    assert len(world.document(f"rejected/{first.run_id}.json")["faults"]) > 1
    assert world.jobs.all() == []


def moved(world: World, name: str, content: bytes = REQUEST) -> IncomingDocument:
    """The file under another name, a day later."""
    world.clock.advance(timedelta(days=1))
    world.objects.delete(INBOX, OBJECT)
    return world.drop(content, name)


@pytest.mark.parametrize("name", ["Archive/2026/03/cassava.yaml", "old/cassava.bak.yaml"])
def test_a_file_that_was_put_away_after_its_run_starts_no_other(world: World, name: str) -> None:
    first = world.drop_and_launch()
    put_away = moved(world, f"requests/{name}")
    for _ in range(2):
        assert world.launch(put_away).run_id == first.run_id
    status = world.document(f"status/requests/{name}.json")
    STATUS.validate(status)
    assert (status["state"], status["run_id"]) == ("ignored", first.run_id)
    assert f"it is a copy of {OBJECT}, which started {first.run_id}" in status["reason"]
    assert states(world) == [RunState.SUBMITTED]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("monday.yaml", REQUEST),
        ("done/cassava.yaml", OTHER),
        ("done/other.yaml", REQUEST),
        ("undone/cassava.yaml", REQUEST),
        ("cassava.2026-03-02.yaml", REQUEST),
    ],
)
def test_a_copy_under_another_name_and_another_file_in_such_a_folder_start_a_run(
    world: World, name: str, content: bytes
) -> None:
    world.drop_and_launch()
    boundary = Boundary()
    world.launch(moved(world, f"requests/{name}", content), boundary)
    assert states(world) == [RunState.SUBMITTED] * 2
    assert boundary.calls.count("read ledger") == (3 if name.startswith("done/") else 1)


def test_an_order_that_was_put_away_is_not_carried_out_again(world: World) -> None:
    run = world.drop_and_launch()
    order = b"{cancel: {run: %s}}" % run.run_id.encode()
    world.launch(world.drop(order, "requests/stop.yaml"))
    assert (
        "is a copy of requests/stop.yaml"
        in world.launch(moved(world, "requests/old/stop.yaml", order)).message
    )


def test_another_object_that_is_gone_is_not_taken_for_the_file(world: World) -> None:
    gone = ObjectGone("gs://champions/elsewhere", 1)
    with pytest.raises(ObjectGone):
        world.launch(world.drop(), At("write active", before=raising(gone)))
    assert states(world) == []
