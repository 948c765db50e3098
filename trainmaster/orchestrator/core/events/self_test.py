"""Self-tests of a deployment: how they are recognized, and how they are answered.

`trainmaster doctor` sends them. They change no run: one names a job that does not exist, the other is a request that
is checked in full and never submitted. docs/how-to/deploy.md, section "Self-test"
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from trainmaster.orchestrator.core.documents.codec import parse_json, time_or
from trainmaster.orchestrator.core.documents.values import text_at
from trainmaster.orchestrator.core.events.envelope import PubsubMessage

SELF_TEST_PREFIX = "self-test/"
MARK = "trainmaster_self_test"
"""The label of a log entry whose value is a self-test's id."""
NO_JOB_ID = "0"
"""The id of no job: real jobs have ids of 16 digits and more."""
DRY_RUN = "dry_run"
SELF_TEST_ID = "self_test_id"
_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, kw_only=True)
class MarkedEntry:
    """A log entry written to check that it arrives. `written_at` is the entry's own timestamp."""

    self_test_id: str
    written_at: datetime


@dataclass(frozen=True, kw_only=True)
class DryRun:
    """A request to check and not to run."""

    self_test_id: str
    published_at: datetime
    content: bytes


@dataclass(frozen=True, kw_only=True)
class Answer:
    """schemas/self_test.v1.schema.json; `verdict` is the result of a dry run's checks."""

    schema: str = "self_test.v1"
    self_test_id: str
    entry_point: str
    asked_at: datetime
    answered_at: datetime
    latency_s: float = field(init=False)
    """From the question's own timestamp to the answer; at least 0, because two machines' clocks may differ."""
    verdict: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        latency_s = max(0.0, (self.answered_at - self.asked_at).total_seconds())
        object.__setattr__(self, "latency_s", latency_s)


def self_test_object(self_test_id: str) -> str:
    """The answer's object in the ledger. The id is 32 hexadecimal digits, so the name is safe."""
    return f"{SELF_TEST_PREFIX}{self_test_id}.json"


def parse_marked_entry(message: PubsubMessage) -> MarkedEntry | None:
    """The self-test in a log entry; None for every entry about a real job, whatever its labels.

    Any principal that can write logs can write this too; its only effect is an answer under its id.
    """
    if MARK.encode() not in message.data:  # almost all entries are about real jobs and are parsed elsewhere
        return None
    try:
        entry = parse_json(message.data)
    except ValueError:
        return None
    self_test_id = text_at(entry, "labels", MARK)
    job_id = text_at(entry, "resource", "labels", "job_id")
    if job_id != NO_JOB_ID or self_test_id is None or not _ID.fullmatch(self_test_id):
        return None
    written_at = time_or(text_at(entry, "timestamp"), message.publish_time)
    return MarkedEntry(self_test_id=self_test_id, written_at=written_at)


def parse_dry_run(message: PubsubMessage) -> DryRun | None:
    """The request in the message if it is a dry run; else None.

    Only `dry_run=false` means the same as no attribute: starting a job by mistake costs more than asking for it again.
    Without a valid self-test id, the answer's id is derived from the message's.
    """
    dry_run = message.attributes.get(DRY_RUN)
    if dry_run is None or dry_run == "false":
        return None
    given = message.attributes.get(SELF_TEST_ID, "")
    # surrogatepass: a replay sets the message's id, which may hold lone surrogates.
    made = hashlib.sha256(message.message_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return DryRun(
        self_test_id=given if _ID.fullmatch(given) else made,
        published_at=message.publish_time,
        content=message.data,
    )
