"""One run in the index: what a list shows of it, in the name and the custom metadata of one object of the ledger bucket.

The name begins with the inverted time at which the run was recorded, so a listing shows the newest runs first, a
thousand for each billed operation, and reads no record. The metadata are the row's fields, without those that are None:
names, amounts and times as they are, all else as JSON in ASCII, because Cloud Storage's XML API has metadata in headers.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, TypeVar

from trainmaster.orchestrator.core.documents.codec import decoded, encoded, encoded_time
from trainmaster.orchestrator.core.job_names import JobKind
from trainmaster.orchestrator.core.names import is_run_id
from trainmaster.orchestrator.core.runs.job import Queued
from trainmaster.orchestrator.core.runs.states import RunState

INDEX_PREFIX = "index/"
METADATA_MAX_BYTES = 8 * 1024
"""All keys and values of one object: https://cloud.google.com/storage/docs/metadata#custom-metadata (read 2026-11-23)."""
TEXT_MAX_BYTES = 400
"""The longest `reason` and the longest `machines`, in UTF-8."""
LABELS_MAX_BYTES = 4096
"""A row's labels as JSON: at least 30 labels fit, however long they are."""
ARGS_MAX_BYTES, METRICS_MAX_BYTES = 400, 400
"""A row's arguments and metrics as JSON: a dozen of each with usual names."""
VALUE_MAX_CHARS = 60
"""The longest name and value among them, and the longest `sent_by`."""
NO_MODEL = "no model"
"""How the reason of a run begins that succeeded and left none."""
_LATEST = datetime.max.replace(tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_Value = TypeVar("_Value")
_TIME_CHARS = 18
"""Digits of the microseconds from any time to the end of the year 9999."""
_AS_JSON = frozenset(
    {
        *("labels", "labels_left_out", "priority", "prices_unknown", "generation", "machines", "reason"),
        *("sent_by", "dirty", "args", "metrics", "queued"),
    }
)
_LEFT_OUT: Mapping[str, object] = {
    **{key: {} for key in ("labels", "args", "metrics")},
    **dict.fromkeys(("labels_left_out", "prices_unknown", "dirty"), False),
}
"""The values that the metadata leave out, beside None."""
_IN_NAME = frozenset({"run_id", "created_at"})


@dataclass(frozen=True, kw_only=True, slots=True)
class IndexRow:
    """What a list shows of a run. Amounts are in `currency`, and None where they are not known. A console keeps 20,000."""

    run_id: str
    created_at: datetime
    """When the run was recorded, which its state `reserved` or `rejected` began with."""
    state: RunState
    source: str
    """What started it: `upload`, `message` or `rule`."""
    generation: int
    """The generation of the record that the row was made from. Of two rows of a run, the larger one is newer."""
    updated_at: datetime
    """When that record was written."""
    ended_at: datetime | None = None
    """When its job ended, or without a job the run."""
    team: str | None = None
    model_name: str | None = None
    """None for a rejected run, like all fields that describe its request."""
    job_kind: JobKind | None = None
    job_id: str | None = None
    """Before there is a job, None."""
    region: str | None = None
    """Where the job is, or where it is submitted next."""
    machines: str | None = None
    """`n1-standard-8 with 1 NVIDIA_TESLA_T4, 3 workers of n1-standard-4, spot`, at most TEXT_MAX_BYTES of it."""
    priority: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    """The request's labels, by name: the first that fit LABELS_MAX_BYTES."""
    labels_left_out: int = 0
    """How many more labels the record has. If there are any, a label that is missing here may be one of them."""
    queued: Queued | None = None
    """The job, while it has not started."""
    retry_at: datetime | None = None
    """Until when the run pauses, outside the queue, before another job follows one that was lost."""
    reason: str | None = None
    """Why the run waits or failed, a rejected run's first fault, or of one that succeeded that it left no model, or its
    last problem: one line, at most TEXT_MAX_BYTES of it."""
    currency: str | None = None
    per_hour: Decimal | None = None
    """What the job was estimated to cost per hour."""
    at_most: Decimal | None = None
    """What the job was estimated to cost if it uses all its time."""
    prices_unknown: bool = False
    """Whether the price table lacked a price that the estimate needs."""
    cost: Decimal | None = None
    """What the job cost; None before its end, without an estimate, and if a price is unknown."""
    sent_by: str | None = None
    commit: str | None = None
    dirty: bool = False
    group: str | None = None
    """The id of the group, of a run of a request with a matrix."""
    args: Mapping[str, str] = field(default_factory=dict)
    """The chief's arguments by name: the first that fit ARGS_MAX_BYTES."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Of the model, or so far: the first by name that fit METRICS_MAX_BYTES."""
    progress_percentage: int | None = None
    """Of a running training. Not stored: clients read it from the log."""

    @property
    def lacks_model(self) -> bool:
        """Whether the run succeeded without a model, as its reason says."""
        return self.state is RunState.SUCCEEDED and (self.reason or "").startswith(NO_MODEL)


def index_object(created_at: datetime, run_id: str) -> str:
    """`index/<microseconds until the year 10000>-<run_id>`: of two runs, the name of the newer one sorts first.

    Raises:
        TypeError: the time is naive.
    """
    return f"{INDEX_PREFIX}{newest_first(created_at)}-{run_id}"


def newest_first(moment: datetime) -> str:
    """The microseconds from the moment until the year 10000: of two, the later one's sorts first.

    Raises:
        TypeError: the time is naive.
    """
    return f"{(_LATEST - moment) // _MICROSECOND:0{_TIME_CHARS}}"


def row_metadata(row: IndexRow) -> dict[str, str]:
    """The custom metadata of the row's object: at most METADATA_MAX_BYTES, if `bounded_*` made its texts and labels."""
    document: Any = encoded(row)  # Any: a JSON object
    kept = {key: value for key, value in document.items() if value != _LEFT_OUT.get(key)}
    texts = {key: json.dumps(value) if key in _AS_JSON else value for key, value in kept.items()}
    return {key: text for key, text in texts.items() if key not in _IN_NAME}


def parse_row(object_name: str, metadata: Mapping[str, str]) -> IndexRow | None:
    """The row in an object's name and metadata. None for any other object, and for a row of an unknown version."""
    inverted, _, run_id = object_name.removeprefix(INDEX_PREFIX).partition("-")
    is_time = len(inverted) == _TIME_CHARS and inverted.isascii() and inverted.isdecimal()
    if not (object_name.startswith(INDEX_PREFIX) and is_time and is_run_id(run_id)):
        return None
    try:
        created_at = _LATEST - int(inverted) * _MICROSECOND
        keys = [key for key in metadata if key in _AS_JSON]
        values = json.loads(f"[{','.join(metadata[key] for key in keys)}]")  # once: lists have 20,000 rows
        named = zip(keys, values, strict=True)
        return decoded(
            IndexRow, {**metadata, **dict(named), "run_id": run_id, "created_at": encoded_time(created_at)}
        )
    except (ValueError, OverflowError, RecursionError):
        return None


def bounded_text(text: str) -> str:
    """One line of at most TEXT_MAX_BYTES, which ends with `…` if the text was longer."""
    line = "".join(char if char.isprintable() else " " for char in text)
    if len(line.encode()) <= TEXT_MAX_BYTES:
        return line
    return line.encode()[: TEXT_MAX_BYTES - len("…".encode())].decode(errors="ignore") + "…"


def bounded_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """The first labels, by name, whose JSON has at most LABELS_MAX_BYTES."""
    return _first_that_fit(dict(sorted(labels.items())), LABELS_MAX_BYTES)


def bounded_args(words: Sequence[str]) -> dict[str, str]:
    """The first arguments whose JSON has at most ARGS_MAX_BYTES; long ones are left out."""
    named = {key: value for key, value in named_args(words).items() if len(key + value) <= VALUE_MAX_CHARS}
    return _first_that_fit(named, ARGS_MAX_BYTES)


def bounded_metrics(metrics: Mapping[str, float]) -> dict[str, float]:
    """The first metrics, by name, whose JSON has at most METRICS_MAX_BYTES; those with long names are left out."""
    finite = {name: value for name, value in sorted(metrics.items()) if math.isfinite(value)}
    short = {name: value for name, value in finite.items() if len(name) <= VALUE_MAX_CHARS}
    return _first_that_fit(short, METRICS_MAX_BYTES)


def _first_that_fit(values: Mapping[str, _Value], most: int) -> dict[str, _Value]:
    kept: dict[str, _Value] = {}
    for key, value in values.items():
        if len(json.dumps({**kept, key: value})) > most:
            break
        kept[key] = value
    return kept


def named_args(words: Sequence[str]) -> dict[str, str]:
    """`--lr=0.1` and `--lr 0.1` as `--lr`: `0.1`; a flag as `set`; other words by their place."""
    found: dict[str, str] = {}
    flag = ""
    for index, word in enumerate(words):
        name, equals, value = word.partition("=")
        if not name.startswith("-"):
            name, value = flag or f"[{index}]", word
        found[name] = value or "set"
        flag = name if word.startswith("-") and not equals else ""
    return found
