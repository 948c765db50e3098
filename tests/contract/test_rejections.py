"""A faulty request becomes a rejected run with a report, whatever fails meanwhile."""

from tests.contract.schemas import RECORD, REPORT, STATUS
from tests.contract.world import REQUEST, Boundary, World
from trainmaster.orchestrator.core.documents.codec import encoded


def test_a_refused_request_costs_eight_storage_operations_and_submits_nothing(world: World) -> None:
    boundary = Boundary()
    world.launch(world.drop(b"model_name: 1"), boundary)
    assert boundary.calls == [
        "read ledger",
        "describe inbox",
        "read inbox",
        "write active",
        "write rejected",
        "write runs",
        "write index",
        "write status",
    ]


def test_the_report_and_the_status_show_where_each_fault_is_but_no_secret(world: World) -> None:
    key = "AIza" + "Sy0123456789_abcdefghijklmnopqrstuv"
    text = b"env: {MAPS: %s, modle: 1}\n%s" % (key.encode(), REQUEST)
    incoming = world.drop_and_launch(text + b"imgae: x\n")
    report = world.document(f"rejected/{incoming.run_id}.json")
    REPORT.validate(report)
    faults = {fault["path"]: fault for fault in report["faults"]}
    last = text.count(b"\n") + 1
    place = {"line": last, "column": 1, "length": 5, "text": "imgae: x", "text_column": 1}
    assert place.items() <= faults["$.imgae"].items()
    assert (faults["$.env.MAPS"]["line"], faults["$.env.MAPS"].get("text")) == (1, None)
    assert (faults["$.env.modle"]["line"], faults["$.env.modle"].get("text")) == (1, None)
    status = world.document("status/requests/cassava.yaml.json")
    STATUS.validate(status)
    assert status["faults"] == report["faults"]
    assert status["report_uri"] == f"gs://ledger/rejected/{incoming.run_id}.json"
    record = encoded(world.record(incoming.run_id))
    RECORD.validate(record)
    assert key not in str((report, status, record))


def test_the_notice_of_a_rejection_goes_out_with_the_next_reconcile_pass(world: World) -> None:
    incoming = world.drop_and_launch(b"[]")
    assert world.notices.published == []
    world.reconcile()
    world.reconcile()
    assert [notice.id for notice in world.notices.published] == [f"{incoming.run_id}/rejected"]
