"""Self-tests of a deployment: how what is sent to try it is known, and what is answered.

`trainmaster doctor` sends them. They change no run: one is about a job that is nobody's, the other is a
request that is checked whole and submitted nowhere. docs/how-to/deploy.md, section "Self-test"
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from trainmaster.orchestrator.core.documents.codec import time_or
from trainmaster.orchestrator.core.documents.unvalidated import text_at
from trainmaster.orchestrator.core.events.envelope import PubsubMessage

SELF_TEST_PREFIX = "self-test/"
MARK = "trainmaster_self_test"
"""The label of a log entry that holds a self-test's id."""
NOBODYS_JOB = "0"
"""Real jobs have ids of 16 digits and more."""
DRY_RUN = "dry_run"
SELF_TEST_ID = "self_test_id"
_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, kw_only=True)
class MarkedEntry:
    """A log entry that somebody wrote to see it arrive. `written_at` is what the entry itself says."""

    self_test_id: str
    written_at: datetime


@dataclass(frozen=True, kw_only=True)
class DryRun:
    """A request to be checked and not to be run."""

    self_test_id: str
    published_at: datetime
    content: bytes


@dataclass(frozen=True, kw_only=True)
class Answer:
    """schemas/self_test.v1.schema.json; `verdict` is what a dry run's request came to."""

    schema: str = "self_test.v1"
    self_test_id: str
    entry_point: str
    asked_at: datetime
    answered_at: datetime
    latency_s: float = field(init=False)
    """From what the question says of its time to the answer; the clocks of two machines, so never below 0."""
    verdict: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        latency_s = max(0.0, (self.answered_at - self.asked_at).total_seconds())
        object.__setattr__(self, "latency_s", latency_s)


def self_test_object(self_test_id: str) -> str:
    """Where the answer lies in the ledger. The id is one of 32 hexadecimal digits, so the name is safe."""
    return f"{SELF_TEST_PREFIX}{self_test_id}.json"


def parse_marked_entry(message: PubsubMessage) -> MarkedEntry | None:
    """The self-test in a log entry; None for every entry about a real job, whatever it is marked with.

    Whoever may write logs may write this too; all that it brings about is an answer under an id of its own.
    """
    if MARK.encode() not in message.data:  # almost all entries are real ones, which are parsed elsewhere
        return None
    try:
        entry = json.loads(message.data)
    except (ValueError, RecursionError):
        return None
    self_test_id = text_at(entry, "labels", MARK)
    job_id = text_at(entry, "resource", "labels", "job_id")
    if job_id != NOBODYS_JOB or self_test_id is None or not _ID.fullmatch(self_test_id):
        return None
    return MarkedEntry(
        self_test_id=self_test_id, written_at=time_or(text_at(entry, "timestamp"), message.publish_time)
    )


def parse_dry_run(message: PubsubMessage) -> DryRun | None:
    """The request in the message, where it only wants to be tried; None where it is to be run.

    Only `dry_run=false` is as good as no attribute: a job that somebody hoped not to start costs more than one
    that has to be asked for again. Without an id of its own, the answer's is made from the message's.
    """
    wanted = message.attributes.get(DRY_RUN)
    if wanted is None or wanted == "false":
        return None
    given = message.attributes.get(SELF_TEST_ID, "")
    # surrogatepass: whoever replays a message writes its id, which may hold what is no legal UTF-8.
    made = hashlib.sha256(message.message_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return DryRun(
        self_test_id=given if _ID.fullmatch(given) else made,
        published_at=message.publish_time,
        content=message.data,
    )
