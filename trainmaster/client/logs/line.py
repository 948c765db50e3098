"""A line of a run's log, and how it reads."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from trainmaster.client.logs.report import Report, reports_in
from trainmaster.orchestrator.core.completion.entry import END_LINES, TRIAL_LABEL
from trainmaster.orchestrator.core.documents.faults import cut

SERVICE = "service"
"""The name under which Vertex AI itself writes, beside the replicas."""
COMPLETED = "Job completed successfully."
LINE_MAX_CHARS = 4000
"""Of a kept line; an entry of Cloud Logging may have 256 KiB."""
PREFIX_MAX_CHARS = 300
_LEVELS = {level: level for level in ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")}
_LEVELS |= {"WARN": "WARNING", "FATAL": "CRITICAL"}
_LETTERS = {"I": "INFO", "W": "WARNING", "E": "ERROR", "F": "CRITICAL"}
_SEPARATORS = str.maketrans(dict.fromkeys("[]|:()", " "))
_WORDS_OF_DATED, _GLOG_CHARS = 10, 5
_WRAPPING = {"message", "attrs", "levelname"}
"""Keys that the service puts around the text of a line on standard error."""


@dataclass(frozen=True, kw_only=True)
class LogLine:
    """One entry of a job's log."""

    insert_id: str
    at: datetime
    severity: str
    """Cloud Logging's name of it. A replica's standard error is ERROR whatever it says."""
    job_id: str
    replica: str
    """For example `workerpool0-0`, or SERVICE."""
    trial_id: str | None
    payload: str | Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.lane} | {self.text}"

    @property
    def lane(self) -> str:
        """The replica; of a trial's, with the trial's id in front, for example `3/workerpool0-0`."""
        return f"{self.trial_id}/{self.replica}" if self.trial_id else self.replica

    @property
    def text(self) -> str:
        """The message of a payload, or else all of it. May have several lines; empty for a blank line of a replica."""
        if isinstance(self.payload, str):
            return self.payload
        message = self.payload.get("message")
        if isinstance(message, str) and (message or self.payload.keys() <= _WRAPPING):
            return message
        rest = {key: value for key, value in self.payload.items() if key not in _WRAPPING}
        return json.dumps(rest or self.payload, ensure_ascii=False, default=str)

    @cached_property
    def reports(self) -> tuple[Report, ...]:
        """What it reports of a training; nothing for a line of the service."""
        return () if self.replica == SERVICE else tuple(reports_in(self.payload, self.text))

    @property
    def level(self) -> str:
        """Its severity. Of a line on standard error, which the service calls an error whatever it says, what it says."""
        wraps = {"attrs", "levelname"} <= self.payload.keys() if isinstance(self.payload, Mapping) else False
        return level_of(self.text) or "DEFAULT" if wraps and self.severity == "ERROR" else self.severity

    @property
    def label(self) -> str:
        """The level, to be shown before the text; empty if the text begins with it."""
        return "" if level_of(self.text) else self.level

    @property
    def ends_job(self) -> bool:
        """Whether the service says that the job itself, not one of its trials, has ended; no line is known of a cancelled one."""
        is_service = self.replica == SERVICE and self.trial_id is None
        return is_service and any(end in self.text for end in END_LINES)

    @property
    def document(self) -> dict[str, Any]:
        """schemas/log_line.v1.schema.json."""
        return {
            "schema": "log_line.v1",
            "at": self.at.isoformat().replace("+00:00", "Z"),
            "severity": self.severity,
            "job_id": self.job_id,
            "replica": self.replica,
            "trial_id": self.trial_id,
            "text": self.text,
            "payload": None if isinstance(self.payload, str) else dict(self.payload),
        }


def level_of(text: str) -> str | None:
    """The severity that a line of a library's log names in its prefix; None for any other line.

    Known are `INFO:root:` of Python's logging, the same behind a date, `FutureWarning:`, and the letter of absl and
    TensorFlow: `I0000 00:00:1795712569`, `2026-11-26 10:00:00.123456: W tensorflow/core`.
    """
    begin = text[:PREFIX_MAX_CHARS]
    words = begin.translate(_SEPARATORS).split()[:_WORDS_OF_DATED] or [""]
    first, levels = words[0], _LEVELS
    if first[:1] in _LETTERS and len(first) == _GLOG_CHARS and first[1:].isdigit():
        return _LETTERS[first[0]]
    if "Warning: " in begin and any(word.endswith("Warning") for word in words):
        return "WARNING"
    if first[:4].isdigit():  # a date
        levels = _LEVELS | _LETTERS
    else:
        words = words[:1]
    return next((levels[word] for word in words if word in levels), None)


def line_of(entry: Any) -> LogLine:  # Any: the client's entry classes share no typed base
    """The line in an entry of the official client."""
    labels = entry.resource.labels or {}
    payload = entry.payload
    return LogLine(
        insert_id=str(entry.insert_id),
        at=entry.timestamp,
        severity=str(entry.severity or "DEFAULT"),
        job_id=str(labels.get("job_id", "")),
        replica=str(labels.get("task_name", "")) or SERVICE,
        trial_id=(entry.labels or {}).get(TRIAL_LABEL) or None,
        payload=payload if isinstance(payload, str | dict) else "",
    )


def shortened_line(line: LogLine) -> LogLine:
    """The line with its text alone, at most LINE_MAX_CHARS of it, and the severity that it says itself."""
    return replace(line, payload=cut(line.text, LINE_MAX_CHARS), severity=line.level)
