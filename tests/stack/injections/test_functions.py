"""Injections strike events on their way to a function."""

import json
import threading
from collections.abc import Callable

import pytest

from trainstack.events.cloudevent import CloudEvent
from trainstack.events.delivery import with_injections
from trainstack.injections import Injections, plan_from

SOURCE = "//storage.googleapis.com/projects/_/buckets/inbox"


def event(name: str = "requests/a b.yaml", event_id: str = "1", **data: str) -> CloudEvent:
    headers = {
        "ce-id": event_id,
        "ce-source": SOURCE,
        "ce-specversion": "1.0",
        "ce-subject": f"objects/{name.replace(' ', '%20')}",
        "ce-type": "google.cloud.storage.object.v1.finalized",
        "Content-Type": "application/json",
    }
    return CloudEvent(headers=headers, body=json.dumps({"name": name, **data}).encode())


class RecordingFunction:
    """A function that remembers what it received."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        self.kills = 0
        self.injections = Injections()
        self.before_answer: Callable[[], object] = lambda: None

    def invoke(self, given: CloudEvent) -> int:
        self.ids.append(given.headers["ce-id"])
        self.before_answer()
        return 204

    def kill(self) -> None:
        self.kills += 1

    def through(self, kind: str, **fields: object) -> Callable[[CloudEvent], int]:
        injection = {"name": "f1", "at": "functions.on-*", "kind": kind, **fields}
        self.injections.put(plan_from(injection))
        return with_injections("on-upload", self.invoke, kill=self.kill, injections=self.injections)


@pytest.mark.parametrize(
    ("kind", "status", "told", "kills"),
    [
        ("error_before", 503, 0, 0),
        ("error_after", 503, 1, 0),
        ("drop", 200, 0, 0),
        ("duplicate", 204, 2, 0),
        ("delay", 204, 1, 0),
        ("kill", 502, 1, 1),
        ("kill_after", 502, 1, 1),
    ],
)
def test_each_kind_of_injection_strikes_an_event(kind: str, status: int, told: int, kills: int) -> None:
    function = RecordingFunction()
    assert function.through(kind, seconds=0.01, match="inbox/requests/a b.yaml")(event()) == status
    assert (len(function.ids), function.kills) == (told, kills)


def test_a_duplicate_is_brought_while_the_first_is_still_worked_on() -> None:
    function = RecordingFunction()
    both = threading.Barrier(2)
    function.before_answer = lambda: both.wait(20)  # passes only when two are here at once
    assert function.through("duplicate")(event()) == 204
