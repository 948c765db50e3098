"""What the job's own state, and what lies in its model directory, mean for the run and its record."""

import hashlib
import json
import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from trainmaster.orchestrator.core.completion.trials import best_trial, recorded_trials, why_no_best
from trainmaster.orchestrator.core.documents.codec import decoded
from trainmaster.orchestrator.core.documents.document import MAX_DEPTH, is_too_deep
from trainmaster.orchestrator.core.documents.faults import listed, plain
from trainmaster.orchestrator.core.documents.validation import schema_faults
from trainmaster.orchestrator.core.names import model_uri, trial_output_uri
from trainmaster.orchestrator.core.requests.spec import Tuning
from trainmaster.orchestrator.core.runs.end import (
    Completion,
    EndReport,
    Model,
    ModelData,
    ModelFiles,
    TuningResult,
)
from trainmaster.orchestrator.core.runs.job import Failure, Job, JobState
from trainmaster.orchestrator.core.runs.moves import moved, with_job
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.states import END_OF, RunState

MANIFEST_NAME = "export.json"
SAVED_MODEL_NAMES = ("saved_model.pb", "saved_model.pbtxt")
MAX_MANIFEST_BYTES = 4 * 1024 * 1024
ERROR_DELAY = timedelta(seconds=90)
"""A failed job's `error` appears up to about a minute after its end.

Source: https://cloud.google.com/vertex-ai/docs/training/understanding-training-service
"""


@dataclass(frozen=True, kw_only=True)
class FileSize:
    """One file of the model directory, its path relative to it."""

    path: str
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class ModelDirectory:
    """What lies under AIP_MODEL_DIR; `manifest` is the content of export.json where there is one."""

    uri: str
    files: tuple[FileSize, ...]
    manifest: bytes | None


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How the run ended: its end, its model, its error, and what a person should know besides."""

    state: RunState
    model: Model | None = None
    tuning: TuningResult | None = None
    failure: Failure | None = None
    problems: tuple[str, ...] = ()


def error_still_due(job: Job, now: datetime) -> bool:
    """Whether a failed job's reason may yet appear."""
    if job.state is not JobState.FAILED or job.error is not None or job.end_time is None:
        return False
    return now - job.end_time < ERROR_DELAY


def model_uri_due(job: Job, tuning: Tuning | None, output_uri: str) -> str | None:
    """Where the ended job's model lies, if it left one: a tuning's best trial may have, whatever the end."""
    if tuning is None:
        return model_uri(output_uri) if job.state is JobState.SUCCEEDED else None
    best = best_trial(job.trials, tuning) if job.state in END_OF else None
    return model_uri(trial_output_uri(output_uri, best.id)) if best is not None else None


def outcome_of(
    job: Job,
    directory: ModelDirectory | None,
    export_schema: Mapping[str, Any],
    tuning: Tuning | None = None,
) -> Outcome | None:
    """The outcome; None while the job goes on. `directory` is the one at `model_uri_due`."""
    state = END_OF.get(job.state)
    if state is None:
        return None
    if tuning is not None:
        return _tuned(state, job, directory, export_schema, tuning)
    if state is RunState.SUCCEEDED and directory is not None:
        model, problems = model_in(directory, export_schema)
        return Outcome(state=state, model=model, problems=problems)
    return Outcome(state=state, failure=_failure(state, job))


def _failure(state: RunState, job: Job) -> Failure | None:
    if state is RunState.FAILED and job.error is None:
        return Failure(message="Vertex AI gives no reason; the job's log may.")
    return job.error


def _tuned(
    state: RunState,
    job: Job,
    directory: ModelDirectory | None,
    export_schema: Mapping[str, Any],
    tuning: Tuning,
) -> Outcome:
    best = best_trial(job.trials, tuning)
    model: Model | None = None
    problems: tuple[str, ...] = ()
    if best is None:
        problems = (why_no_best(job.trials, tuning),)
    elif directory is not None:
        model, problems = model_in(directory, export_schema)
        best = replace(best, model_uri=model.uri if model else None)
    return Outcome(
        state=state,
        model=model,
        tuning=TuningResult(trials=recorded_trials(job.trials, tuning), best_trial=best),
        failure=_failure(state, job),
        problems=problems,
    )


def model_in(
    directory: ModelDirectory, export_schema: Mapping[str, Any]
) -> tuple[Model | None, tuple[str, ...]]:
    """The model in the directory, and what is wrong with it in plain words."""
    sizes = {file.path: file.size_bytes for file in directory.files}
    whole = Model(uri=directory.uri, files=_files(sizes.values()))
    saved = any(name in sizes for name in SAVED_MODEL_NAMES)
    if directory.manifest is not None:
        manifest, problems = _manifest_in(directory.manifest, directory.uri, sizes, export_schema)
        if not problems:
            return _model_of(manifest, directory.manifest, directory.uri)
        told = tuple(f"{MANIFEST_NAME} is not believed: {problem}" for problem in problems)
        return (whole if saved else None), told
    if saved:
        return whole, (f"no {MANIFEST_NAME} was found beside the model, so its metrics are not known",)
    return None, (f"no model was found under {directory.uri}; the trainer must write to AIP_MODEL_DIR",)


# Any: where there are no problems, the schema vouches for the types.
def _manifest_in(
    content: bytes, uri: str, sizes: Mapping[str, int], export_schema: Mapping[str, Any]
) -> tuple[Any, tuple[str, ...]]:
    """The manifest, and why it does not describe what lies in the directory; nothing when it does."""
    try:
        manifest = json.loads(content)
    except (ValueError, RecursionError) as error:
        return None, (f"it is no JSON: {error}",)
    if is_too_deep(manifest):
        return None, (f"it is nested deeper than {MAX_DEPTH} levels",)
    faults = schema_faults(export_schema, manifest)
    if faults:
        return manifest, tuple(str(fault) for fault in faults)
    problems = []
    if manifest["model_uri"] != uri:
        problems.append(f"it describes {manifest['model_uri']!r}, not {uri}")
    problems += _size_problems(manifest["files"], sizes)
    return manifest, tuple(problems)


def _size_problems(files: Sequence[Mapping[str, Any]], sizes: Mapping[str, int]) -> list[str]:
    missing = [plain(file["path"]) for file in files if file["path"] not in sizes]
    differing = [
        f"{plain(file['path'])} has {sizes[file['path']]} bytes, not {file['size_bytes']}"
        for file in files
        if sizes.get(file["path"], file["size_bytes"]) != file["size_bytes"]
    ]
    return ([f"files are missing: {listed(missing)}"] if missing else []) + differing


def _model_of(document: Mapping[str, Any], manifest: bytes, uri: str) -> tuple[Model, tuple[str, ...]]:
    metrics = {name: _float(value) for name, value in sorted(document["metrics"].items())}
    # Python reads and writes NaN, which is no JSON: a diverged training must not spoil its record.
    diverged = tuple(
        f"the metric {plain(name)} is {value}: the training diverged"
        for name, value in metrics.items()
        if not math.isfinite(value)
    )
    model = Model(
        uri=uri,
        manifest_uri=uri + MANIFEST_NAME,
        manifest_sha256=hashlib.sha256(manifest).hexdigest(),
        dataset=decoded(ModelData, document["dataset"]),
        metrics={name: value for name, value in metrics.items() if math.isfinite(value)},
        files=_files([file["size_bytes"] for file in document["files"]]),
    )
    return model, diverged


def _files(sizes: Collection[int]) -> ModelFiles:
    return ModelFiles(count=len(sizes), size_bytes=sum(sizes))


def _float(number: float) -> float:
    try:
        return float(number)
    except OverflowError:  # JSON bounds no whole number
        return math.inf if number > 0 else -math.inf


EXHAUSTED, UNAVAILABLE = 8, 14
"""google.rpc.Code: https://cloud.google.com/apis/design/errors#handling_errors"""
_OF_THE_REQUEST = (3, 5, 6, 7, 11, 12, 16)
"""Codes that say what is wrong with the request; the words beside them quote it, names of images among them.

9, FAILED_PRECONDITION, is none: a full quota is told with it, too.
"""
_WORDS = re.compile(
    r"Resources are insufficient in region"
    r"|ZONE_RESOURCE_POOL_EXHAUSTED"
    r"|quota metrics exceed",
    re.IGNORECASE,
)
"""What the service says of it, as users of 2026 quote it in public threads; the wording is documented nowhere."""


def stockout_of(job: Job) -> str | None:
    """Why there was no capacity for the job; None for one that ran, or that ended in another way.

    The times decide, then the code, and where that says nothing the words: a program may print any words, but only once it runs.
    """
    if job.state is not JobState.FAILED or job.error is None:
        return None
    if job.start_time is not None or any(trial.start_time is not None for trial in job.trials):
        return None
    if job.error.code in _OF_THE_REQUEST:
        return None
    known = job.error.code in (EXHAUSTED, UNAVAILABLE) or _WORDS.search(job.error.message)
    return job.error.message if known else None


def settled(
    record: RunRecord, job: Job, outcome: Outcome, *, report: EndReport, now: datetime, attempt: str
) -> RunRecord:
    """The ended record.

    Raises:
        ValueError: the record had ended before.
    """
    known = with_job(record, job, now=now, attempt=attempt)
    ended = moved(known, outcome.state, entered_at=now, now=now, attempt=attempt)
    return replace(
        ended,
        model=outcome.model,
        tuning=outcome.tuning,
        failure=outcome.failure,
        problems=(*record.problems, *outcome.problems),
        completion=Completion(reported_by=report, durations_s=durations_s(record.source.event_time, job)),
    )


def seen_going_on(record: RunRecord, job: Job, *, now: datetime, attempt: str) -> RunRecord | None:
    """The record with what the job's times newly prove; None when they prove nothing new."""
    known = with_job(record, job, now=now, attempt=attempt)
    return known if known.state is not record.state else None


def durations_s(asked_at: datetime, job: Job) -> Mapping[str, float]:
    """Seconds from the request to the job, in the queue, at work, and over all; only those that are known."""
    marks = (
        ("until_job", asked_at, job.create_time),
        ("queued", job.create_time, job.start_time),
        ("running", job.start_time, job.end_time),
        ("total", asked_at, job.end_time),
    )
    return {
        name: round((end - start).total_seconds(), 3)
        for name, start, end in marks
        if start is not None and end is not None
    }


def job_vanished(
    record: RunRecord, failure: Failure, *, report: EndReport, now: datetime, attempt: str
) -> RunRecord:
    """The record of a run whose job is no longer there to be asked."""
    ended = moved(record, RunState.FAILED, entered_at=now, now=now, attempt=attempt)
    return replace(ended, failure=failure, completion=Completion(reported_by=report))
