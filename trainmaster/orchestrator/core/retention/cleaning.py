"""One round through the index, newest run first: what goes of each run, and why the rest stays.

A run that starts from another one is recorded after it. So when the round reaches a run, it has seen every run that may
have started from it, and one pass follows a lineage of any length.

Where a round is, and what it has decided but perhaps not done, is one document of the ledger: a tick that dies between
any two deletions is continued by the next one.
"""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from trainmaster.orchestrator.core.completion.steps import END_STEPS
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.names import has_form_of_run_id, in_team, split_object_uri
from trainmaster.orchestrator.core.policy.retention import Part, Retention
from trainmaster.orchestrator.core.runs.end import Completion
from trainmaster.orchestrator.core.runs.index import IndexRow
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.states import ENDS

ROUND_EVERY = timedelta(days=1)
NEW_WITHIN = timedelta(hours=1)
"""A run that was recorded so shortly before a round, or during it, may have had no row when the round passed its place."""
RECORD_MIN_AGE = timedelta(days=8)
"""Until then a dead letter about the run or its jobs may be replayed: trainmaster/deploy/topology.yaml keeps them for a week."""
ACTIVE = "it has not ended, or steps after its end are left"
REIGNED, OF_RULE = "it is or was champion", "a rule's request names it"
_WORD = re.compile(r"[a-z0-9_-]+")


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What goes of a run, and for each other part that is over, why it stays."""

    row: IndexRow
    gone: tuple[Part, ...] = ()
    stays: Mapping[Part, str] = field(default_factory=dict)


@dataclass(kw_only=True)
class Round:
    """How far a round is; `decide` changes it. `place`: the last row that it has decided on.

    By run id, `pending` is what it decided last, and `kept` why runs must stay. `counts`: how many runs, checkpoints and
    models of each name it has passed.
    """

    began_at: datetime
    ended_at: datetime | None = None
    asked_at: datetime | None = None
    """When an order last asked for a round."""
    place: str = ""
    kept: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    pending: dict[str, tuple[Part, ...]] = field(default_factory=dict)
    removed: int = 0

    @property
    def is_over(self) -> bool:
        """Whether it has passed all runs, and removed what it decided."""
        return self.ended_at is not None and not self.pending

    def is_due(self, now: datetime) -> bool:
        """Whether another round must begin."""
        is_asked = self.asked_at is not None and self.asked_at >= self.began_at
        return self.is_over and (is_asked or now - self.began_at >= ROUND_EVERY)

    def keep(self, run_ids: Iterable[str], why: str) -> None:
        for run_id in run_ids:
            self.kept.setdefault(run_id, why)


def decide(
    of_round: Round,
    row: IndexRow,
    record: RunRecord,
    retention: Retention,
    *,
    active: Collection[str],
    bucket: str,
    now: datetime,
) -> Decision:
    """What goes of the run. Call it for each run of the round, newest first.

    `active`: the runs that are marked, because something is left to do. `bucket`: the only one whose objects are removed.
    """
    has_model = record.model is not None and record.model.deleted_at is None
    keys = {part: f"{part} {in_team(row.team, row.model_name or '')}" for part in Part}
    newer = {part: of_round.counts.get(key, 0) for part, key in keys.items()}
    of_round.counts |= {keys[part]: newer[part] + (part is not Part.MODELS or has_model) for part in Part}
    age = now - (row.ended_at or row.updated_at)
    over = [
        part
        for part in Part
        if (keep := retention.get(part)) is not None
        and keep.is_over(age, newer[part])
        and (part is not Part.RUNS or age >= RECORD_MIN_AGE)
        and part not in (record.cleaned or {})
    ]
    why = of_round.kept.pop(row.run_id, "") or _use_of(record.completion or Completion(), now)
    if row.state not in ENDS or not record.ended or row.run_id in active:
        why = ACTIVE
    stays = dict.fromkeys(over, why) if why else dict(_obstacles(record, over, bucket, newer[Part.MODELS]))
    if has_model and Part.RUNS in over and (Part.MODELS not in over or Part.MODELS in stays):
        stays.setdefault(Part.RUNS, "its model stays")
    gone = tuple(part for part in over if part not in stays)
    if Part.MODELS not in (*gone, *(record.cleaned or {})) and Part.RUNS not in gone:
        of_round.keep(mentioned_runs(record), f"{record.run_id} started from it")
    return Decision(row=row, gone=gone, stays=stays)


def _use_of(completion: Completion, now: datetime) -> str:
    """What the model is still for, as the steps `evaluation` and `registry` record it; empty for nothing."""
    approve_by = completion.champion.approve_by if completion.champion else None
    if approve_by is not None and approve_by > now:
        return "its promotion waits for approval"
    is_registered = completion.registration is not None and completion.registration.version is not None
    return "its model is in the Model Registry" if is_registered else ""


def _obstacles(
    record: RunRecord, over: Collection[Part], bucket: str, newer_models: int
) -> Iterator[tuple[Part, str]]:
    output, model = record.output_uri, record.model
    if Part.MODELS in over and model is not None and newer_models == 0:
        yield Part.MODELS, "it is the newest model of its name"
    elif Part.MODELS in over and model is not None and not model.uri.startswith(f"{output}/"):
        yield Part.MODELS, "its model is not in a directory of its own"
    if output is not None and not own_prefix(record, bucket):
        for part in (Part.MODELS, Part.CHECKPOINTS):
            if part in over:
                yield part, f"its output is not in gs://{bucket}"


def mentioned_runs(record: RunRecord) -> set[str]:
    """The runs whose ids are in the request, in whatever form: what the run started from is one of them."""
    if record.request is None:
        return set()
    return runs_in(encoded(record.request.document), record.source.firing_values) - {record.run_id}


def runs_in(*documents: object) -> set[str]:
    """The run ids in these documents."""
    return {word for word in _WORD.findall(json.dumps(documents)) if has_form_of_run_id(word)}


def own_prefix(record: RunRecord, bucket: str) -> str:
    """What the names of the run's objects in the bucket begin with; empty if that is not its directory alone."""
    if record.output_uri is None:
        return ""
    its_bucket, name = split_object_uri(record.output_uri)
    is_own = its_bucket == bucket and name.rpartition("/")[2] == record.run_id
    return f"{name}/" if is_own else ""


def prefixes_of(record: RunRecord, parts: Collection[Part], bucket: str) -> tuple[str, ...]:
    """What the names of the objects begin with that go with these parts: with a record all that its run left."""
    prefix = own_prefix(record, bucket)
    if not prefix or not parts:
        return ()
    if Part.MODELS in parts or Part.RUNS in parts:
        return (prefix,)
    trials = record.tuning.trials if record.tuning else ()
    return (f"{prefix}checkpoints/", *(f"{prefix}{trial.id}/checkpoints/" for trial in trials))


def with_mark(record: RunRecord, parts: Collection[Part], now: datetime, attempt: str) -> RunRecord | None:
    """The record that says what is removed; None if it does so already."""
    cleaned = {**{str(part): now for part in parts if part is not Part.RUNS}, **(record.cleaned or {})}
    model = record.model
    if model is not None and Part.MODELS in cleaned and model.deleted_at is None:
        model = replace(model, deleted_at=cleaned[Part.MODELS])
    if cleaned == (record.cleaned or {}) and model == record.model:
        return None
    return replace(record, cleaned=cleaned, model=model, updated_at=now, attempt=attempt)


def tombstone(record: RunRecord, now: datetime, attempt: str) -> RunRecord:
    """What is left of a record that is removed: a late delivery of its event finds it, and starts no second run."""
    source = replace(record.source, firing_values=None, sent_by=None, commit=None, forced=None)
    return RunRecord(
        run_id=record.run_id,
        state=record.state,
        source=source,
        attempt=attempt,
        updated_at=now,
        history=record.history[-1:],
        job=record.job,
        completion=Completion(steps_done=END_STEPS),
        cleaned={**(record.cleaned or {}), Part.RUNS: now},
    )
