"""The explanation of a run or a model: every step from the event to the champion."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from trainmaster.client.clients import Clients
from trainmaster.client.errors import NotFound, service_errors
from trainmaster.client.find import Run, find_run
from trainmaster.client.logs.read import JobLogReader, Selection
from trainmaster.client.rules.champions import find_reigning
from trainmaster.client.runs.facts import candidate_of, installed_uri
from trainmaster.client.runs.queue_listing import Waits, waiting_place
from trainmaster.client.runs.repairs import repair_of
from trainmaster.client.watch.now import tuning_now
from trainmaster.orchestrator.core.admission.candidates import pools_of
from trainmaster.orchestrator.core.champions.champion import Reign
from trainmaster.orchestrator.core.completion.explanation import cut_lines
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.job_names import console_uri, job_id
from trainmaster.orchestrator.core.names import has_form_of_run_id
from trainmaster.orchestrator.core.runs.job import Failure, RecordedJob
from trainmaster.orchestrator.core.runs.record import RunRecord
from trainmaster.orchestrator.core.runs.states import RunState

EXPLANATION_SCHEMA = "explanation.v1"
LAST_LINES = 12
HOLDS = ("hold_queued", "hold_pending")
"""The kinds of a stack's injections that keep a job from its start: docs/reference/local-faults.md."""
_PARTS = ("run_id", "state", "history", "source", "job", "failure", "model", "utilization", "problems")
"""Of a record, as they are."""


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Of a run, or of a model's champion and of the run that trained it: schemas/explanation.v1.schema.json."""

    model_name: str | None = None
    champion: Reign | None = None
    record: RunRecord | None = None
    """The run's, with what was read beside it: the last lines of the replica that failed first, and problems of reading
    them. None if the champion's run has no record any more."""
    place: Waits | None = None
    """The place of a waiting run in the queue."""
    held_by: str | None = None
    """The injection of a local stack that holds the run's job before its start; empty if none does, None if not read."""

    @property
    def repair(self) -> str | None:
        """The likely repair of the failure."""
        failure = self.record.failure if self.record else None
        return repair_of(failure, self.record.run_id, self.record) if failure and self.record else None

    @property
    def document(self) -> dict[str, Any]:
        run = self._run_document(self.record) if self.record else None
        parts = {"model_name": self.model_name, "champion": self.champion, "run": run}
        return {"schema": EXPLANATION_SCHEMA, **_known_parts(parts)}

    def _run_document(self, record: RunRecord) -> dict[str, Any]:
        completion, candidate = record.completion, candidate_of(record)
        best = record.tuning or record.progress
        pools = pools_of(candidate.spec.cluster) if candidate else ()
        parts: dict[str, object] = {name: getattr(record, name) for name in _PARTS}
        return _known_parts(
            parts
            | {
                "program": _program_document(record),
                "tries": record.submission.tries,
                "abandoned_jobs": record.submission.abandoned_jobs,
                "console_uri": console_uri(record.job.name) if record.job else None,
                "replicas": [
                    {"role": role, "count": pool.replicas, "machine": pool.machine} for role, pool in pools
                ],
                "waiting": record.admission.waiting,
                "place": self.place,
                "held_by": self.held_by or None,
                "repair": self.repair,
                "best_trial": best.best_trial if best else None,
                "champion": completion.champion if completion else None,
                "registration": completion.registration if completion else None,
                "estimate": record.request.estimate if record.request else None,
                "cost": completion.cost if completion else None,
            }
        )


def _program_document(record: RunRecord) -> dict[str, Any] | None:
    """Without a digest of the image if the request names none: the service does not report which image it pulled."""
    candidate = candidate_of(record)
    if record.request is None or candidate is None:
        return None
    image = candidate.spec.cluster.chief.program.image
    return _known_parts(
        {
            "model_name": record.request.model_name,
            "dialect": record.request.original.dialect,
            "original_uri": record.request.original.uri,
            "image": image,
            "image_digest": image.partition("@")[2] or None,
            "machines": candidate.text,
            "installed_uri": installed_uri(record),
        }
    )


def _known_parts(parts: Mapping[str, object]) -> dict[str, Any]:
    return {key: encoded(value) for key, value in parts.items() if value is not None}


def explain(clients: Clients, text: str, now: datetime) -> Explanation:
    """The explanation of a run, by its id, file or message; or of the champion under that name.

    Costs one read for most runs. A waiting run costs a listing more, a failed one at most a read of its job's log, an
    active tuning one of its job, and a model the read of its champion.

    Raises:
        NotFound: there is neither a run nor a champion of that name.
    """
    if not has_form_of_run_id(text) and not set(text) & set("./"):
        try:
            return explain_model(clients, text, now)
        except NotFound as no_champion:
            try:
                return _explain_run_now(clients, text, now)
            except NotFound as no_run:
                raise NotFound(f"{no_run}\n{no_champion}") from no_run
    return _explain_run_now(clients, text, now)


def _explain_run_now(clients: Clients, text: str, now: datetime) -> Explanation:
    run = find_run(clients, text)
    return explain_run(clients, tuning_now(clients, run, now) or run, now)


def explain_model(clients: Clients, model_name: str, now: datetime) -> Explanation:
    """Where the champion of the model comes from; of a team's model, `<team>/<name>`.

    Raises:
        NotFound: the model has no champion, or none at present.
    """
    _, reign = find_reigning(clients, model_name)
    try:
        found = explain_run(clients, find_run(clients, reign.run_id), now)
    except NotFound:
        return Explanation(model_name=model_name, champion=reign)
    return replace(found, model_name=model_name, champion=reign)


def explain_run(clients: Clients, run: Run, now: datetime) -> Explanation:
    """The explanation of a run that was read already; a waiting or failed one costs as much as with `explain`."""
    record = run.record
    place = waiting_place(clients, record.run_id, now) if record.state is RunState.WAITING else None
    failure, problems = _failure(clients, record)
    shown = replace(record, failure=failure, problems=(*record.problems, *problems))
    is_queued = clients.context.state is not None and record.state is RunState.SUBMITTED
    held_by = _holder(clients, record.job) if record.job is not None and is_queued else None
    return Explanation(record=shown, place=place, held_by=held_by)


def _holder(clients: Clients, job: RecordedJob) -> str | None:
    """What keeps the job of a stack from its start, if an injection does; None if the stack does not answer."""
    import requests  # late: it takes longer than the rest of an explanation

    try:
        plan = requests.get(f"{clients.context.vertex_host}/emulator/v1/injections", timeout=2).json()
    except requests.RequestException:
        return None
    of_job = f"/{job_id(job.name)}"
    rows = (row for row in plan["injections"] if row["kind"] in HOLDS)
    holders = [row for row in rows if any(call.endswith(of_job) for call in row["on"])]
    return ", ".join(f"the injection {row['name']!r} ({row['kind']}) of this stack" for row in holders)


def _failure(clients: Clients, record: RunRecord) -> tuple[Failure | None, tuple[str, ...]]:
    """The failure of a failed run, with the last lines of its job's log if the record has none; and problems."""
    failure = record.failure
    if failure is None or failure.last_lines or record.job is None:
        return failure, ()
    selection = Selection(replica=failure.replica)
    try:
        read = JobLogReader(clients.logs, record.history[0].at, selection)
        lines, _ = read.last([job_id(record.job.name)], LAST_LINES)
    except service_errors() as error:
        return failure, (f"the log of the job cannot be read: {error}",)
    texts = [text for line in lines for text in line.text.splitlines()][-LAST_LINES:]
    return replace(failure, last_lines=cut_lines(texts) or None), ()
