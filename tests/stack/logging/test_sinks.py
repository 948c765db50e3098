"""Sinks: what reaches Pub/Sub, and that nothing is lost on the way."""

import subprocess
import sys
from pathlib import Path

import requests

from tests.stack.logging.stack import Stack, connected, service_entry
from tests.stack.services import alone
from tests.stack.waiting import wait_until
from trainstack import logging, pubsub

ON_A_FULL_DISK = """
import contextlib, glob, os, pathlib, resource, signal, sys
from trainstack.logging.service import LogService
from trainstack.logging.store import LogStore

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
service = LogService(LogStore(pathlib.Path(sys.argv[1])))
sink = {"name": "s", "destination": "pubsub.googleapis.com/projects/p/topics/t", "filter": "severity>=ERROR"}
entry = {"logName": "projects/p/logs/a", "resource": {"type": "global"}, "textPayload": "x", "severity": "ERROR"}
service.create("sinks", "projects/p", sink)
full = max(os.path.getsize(path) for path in glob.glob(sys.argv[1] + "/*-wal"))
resource.setrlimit(resource.RLIMIT_FSIZE, (full, resource.RLIM_INFINITY))
with contextlib.suppress(OSError):
    service.update("sinks", "projects/p/sinks/s", sink | {"filter": "severity>=CRITICAL"})
    sys.exit("the disk was not full")
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
service.write([entry])
print(dict(service.outbox.owing()))
"""


def test_a_change_of_a_sink_that_a_full_disk_refused_has_no_effect(tmp_path: Path) -> None:
    command = [sys.executable, "-c", ON_A_FULL_DISK, str(tmp_path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout == "{'projects/p/sinks/s': 1}\n"


def test_a_matching_entry_reaches_the_topic_word_for_word(stack: Stack) -> None:
    stack.topic("logs")
    stack.sink("s1", "logs", 'textPayload="Job completed successfully."')
    stack.write(service_entry("Job is running."), service_entry("Job completed successfully."))
    (received,) = stack.received("logs", 1)
    (kept,) = stack.entries("textPayload:completed")
    assert received.pop("attributes") == {"logging.googleapis.com/timestamp": kept["timestamp"]}
    assert received == kept


def test_only_what_comes_after_a_sinks_creation_is_exported(stack: Stack) -> None:
    stack.topic("logs")
    stack.write(service_entry("before"))
    stack.sink("s1", "logs", "")
    stack.write(service_entry("after"))
    assert [entry["textPayload"] for entry in stack.received("logs", 1)] == ["after"]
    # An entry is crossed out after Pub/Sub took it; its receiver may be quicker.
    wait_until(lambda: stack.stats("s1")["owed"] == 0, "nothing owed")


def test_a_disabled_sink_holds_entries_back(stack: Stack) -> None:
    stack.topic("logs")
    stack.sink("s1", "logs", 'severity>=INFO AND resource.type="ml_job"')
    stack.write(service_entry("no", severity="DEBUG"), service_entry("yes"))
    stack.call("PATCH", "/v2/projects/p1/sinks/s1?updateMask=disabled", {"disabled": True})
    stack.write(service_entry("off"))
    stack.call("PATCH", "/v2/projects/p1/sinks/s1?updateMask=disabled", {"disabled": False})
    stack.write(service_entry("on again"))
    assert [entry["textPayload"] for entry in stack.received("logs", 2)] == ["yes", "on again"]


def test_a_missing_topic_is_visible_and_its_entries_arrive_once_it_exists(stack: Stack) -> None:
    stack.sink("s1", "absent", "")
    stack.write(service_entry("one"))
    wait_until(lambda: stack.stats("s1")["last_error"], "the sink's error")
    assert "absent" in stack.stats("s1")["last_error"]
    assert stack.stats("s1")["owed"] == 1
    # A topic drops what comes before its first subscription: nothing is exported while the two are made.
    held = {"name": "held", "at": "logging.export", "kind": "error_before"}
    stack.call("POST", "/emulator/v1/injections", {"injections": [held]})
    wait_until(
        lambda: stack.call("GET", "/emulator/v1/injections")["injections"][0]["struck"], "exports are held"
    )
    stack.topic("absent")
    stack.call("DELETE", "/emulator/v1/injections/held")
    assert [entry["textPayload"] for entry in stack.received("absent", 1)] == ["one"]
    wait_until(
        lambda: stack.stats("s1") | {"owed": 0, "published": 1, "failures": 0} == stack.stats("s1"),
        "recovery",
    )


def test_a_sink_that_is_given_another_topic_takes_what_it_owes_there(stack: Stack) -> None:
    stack.sink("s1", "absent", "")
    stack.write(service_entry("one"))
    wait_until(lambda: stack.stats("s1")["failures"], "the first failure")
    stack.topic("present")
    destination = "pubsub.googleapis.com/projects/p1/topics/present"
    stack.call("PATCH", "/v2/projects/p1/sinks/s1?updateMask=destination", {"destination": destination})
    assert [entry["textPayload"] for entry in stack.received("present", 1)] == ["one"]


def test_a_broken_sink_holds_up_no_other(stack: Stack) -> None:
    stack.sink("broken", "absent", "")
    stack.topic("logs")
    stack.sink("whole", "logs", "")
    stack.write(*(service_entry(str(number)) for number in range(250)))
    assert len(stack.received("logs", 250)) == 250
    assert stack.stats("broken")["owed"] == 250


def test_an_invalid_sink_is_refused_with_all_its_faults(stack: Stack) -> None:
    body = {
        "name": "_s",
        "destination": "storage.googleapis.com/b",
        "exclusions": [{"name": "e", "filter": "a"}],
        "filter": "",
        "thud": 1,
    }
    message = stack.call("POST", "/v2/projects/p1/sinks", body)["error"]["message"]
    for named in (
        "name '_s'",
        "'storage.googleapis.com/b'",
        "LogSink.exclusions is not imitated",
        "LogSink.thud is unknown",
    ):
        assert named in message


def test_a_masked_update_changes_those_fields_alone(stack: Stack) -> None:
    stack.sink("s1", "t-1", "severity>=ERROR", description="old")
    patched = stack.call(
        "PATCH", "/v2/projects/p1/sinks/s1?updateMask=description", {"description": "new", "filter": "x"}
    )
    assert (patched["description"], patched["filter"]) == ("new", "severity>=ERROR")
    without_body = stack.call("PATCH", "/v2/projects/p1/sinks/s1?updateMask=description")
    assert without_body["error"]["code"] == 400
    put = stack.call("PUT", "/v2/projects/p1/sinks/s1", {"name": "s1", "destination": patched["destination"]})
    assert put["description"] == "new"
    assert "filter" not in put
    assert (
        stack.call("PATCH", "/v2/projects/p1/sinks/s1?updateMask=name", {"name": "x"})["error"]["code"] == 400
    )


def test_a_kill_between_writing_and_publishing_loses_nothing(tmp_path: Path) -> None:
    sink = {
        "name": "s1",
        "destination": "pubsub.googleapis.com/projects/p1/topics/logs",
        "filter": "severity>=ERROR",
    }
    with pubsub.serve(tmp_path / "pubsub") as address:
        with alone("logging", tmp_path / "logging", "127.0.0.1:1") as (_, url):  # no process listens there
            requests.post(f"{url}/v2/projects/p1/sinks", json=sink, timeout=60)
            entries = [service_entry(str(number), severity="ERROR") for number in range(20)]
            requests.post(f"{url}/v2/entries:write", json={"entries": entries}, timeout=60)
        with connected("", address) as early:  # a topic drops what comes before its first subscription
            early.topic("logs")
        with logging.serve(tmp_path / "logging", address) as url, connected(url, address) as stack:
            received = stack.received("logs", 20)
            assert sorted(int(entry["textPayload"]) for entry in received) == list(range(20))
            assert len(stack.entries()) == 20
