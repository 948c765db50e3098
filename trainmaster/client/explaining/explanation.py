"""The explanation of a run or a model: every step from the event to the champion."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from trainmaster.client.errors import NotFound, service_errors
from trainmaster.client.find import Run, find_run
from trainmaster.client.logs.read import JobLogReader, Selection
from trainmaster.client.rules.champions import find_champion
from trainmaster.client.runs.facts import candidate_of, console_uri
from trainmaster.client.runs.queue_listing import Waits, waiting_place
from trainmaster.client.runs.repairs import repair_of
from trainmaster.client.study.now import tuning_now
from trainmaster.orchestrator.core.admission.candidates import pools_of
from trainmaster.orchestrator.core.champions.champion import Reign
from trainmaster.orchestrator.core.completion.explanation import cut_lines
from trainmaster.orchestrator.core.documents.codec import encoded
from trainmaster.orchestrator.core.job_names import job_id
from trainmaster.orchestrator.core.names import has_form_of_run_id
from trainmaster.orchestrator.core.runs.end import ChampionVerdict, Cost, Model
from trainmaster.orchestrator.core.runs.job import BestTrial, Failure, RecordedJob
from trainmaster.orchestrator.core.runs.record import (
    AbandonedJob,
    Estimate,
    RefusedCandidate,
    RunRecord,
    Source,
    Step,
    Waiting,
)
from trainmaster.orchestrator.core.runs.states import RunState

if TYPE_CHECKING:
    from trainmaster.client.clients import Clients

EXPLANATION_SCHEMA = "explanation.v1"
LAST_LINES = 12
_DIGEST = "@sha256:"


@dataclass(frozen=True, kw_only=True)
class ExplainedProgram:
    """What the request became: its own text, the program, and where it runs or runs next."""

    model_name: str
    dialect: str
    original_uri: str
    image: str
    image_digest: str | None
    """None if the request names no digest: the service does not report which image it pulled."""
    machines: str


@dataclass(frozen=True, kw_only=True)
class Replicas:
    """How many replicas a role has, of which machine."""

    role: str
    count: int
    machine: str


@dataclass(frozen=True, kw_only=True)
class RunExplanation:
    """Each step of a run, as far as it got; what has not happened is None."""

    run_id: str
    state: RunState
    history: tuple[Step, ...]
    source: Source
    program: ExplainedProgram | None = None
    """None for a rejected run."""
    tries: tuple[RefusedCandidate, ...] = ()
    """Candidates that had no room for the run, and why."""
    abandoned_jobs: tuple[AbandonedJob, ...] = ()
    job: RecordedJob | None = None
    console_uri: str | None = None
    replicas: tuple[Replicas, ...] = ()
    waiting: Waiting | None = None
    place: Waits | None = None
    """The place of a waiting run in the queue."""
    failure: Failure | None = None
    """With the last lines of the replica that failed first; from the job's log, if the record has none."""
    repair: str | None = None
    """The likely repair of the failure."""
    model: Model | None = None
    best_trial: BestTrial | None = None
    champion: ChampionVerdict | None = None
    estimate: Estimate | None = None
    cost: Cost | None = None
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Of a run, or of a model's champion and of the run that trained it: schemas/explanation.v1.schema.json."""

    schema: str = EXPLANATION_SCHEMA
    model_name: str | None = None
    champion: Reign | None = None
    run: RunExplanation | None = None
    """None if the champion's run has no record any more."""
    record: RunRecord | None = None
    """The run's record, with what was read beside it; not part of the document."""

    @property
    def document(self) -> dict[str, Any]:
        document: Any = encoded(self)
        return {key: value for key, value in document.items() if key != "record"}


def explain(clients: "Clients", text: str, now: datetime) -> Explanation:
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
                return explain_run(clients, _find_run_now(clients, text, now), now)
            except NotFound as no_run:
                raise NotFound(f"{no_run}\n{no_champion}") from no_run
    return explain_run(clients, _find_run_now(clients, text, now), now)


def _find_run_now(clients: "Clients", text: str, now: datetime) -> Run:
    run = find_run(clients, text)
    return tuning_now(clients, run, now) or run


def explain_model(clients: "Clients", model_name: str, now: datetime) -> Explanation:
    """Where the champion of the model comes from; of a team's model, `<team>/<name>`.

    Raises:
        NotFound: the model has no champion, or none at present.
    """
    reign = find_champion(clients, model_name).champion.current
    if reign is None:
        raise NotFound(
            f"{model_name!r} has no champion at present. Its past: trainmaster champions show {model_name}"
        )
    try:
        found = explain_run(clients, find_run(clients, reign.run_id), now)
    except NotFound:
        return Explanation(model_name=model_name, champion=reign)
    return Explanation(model_name=model_name, champion=reign, run=found.run, record=found.record)


def explain_run(clients: "Clients", run: Run, now: datetime) -> Explanation:
    """The explanation of a run that was read already; a waiting or failed one costs as much as with `explain`."""
    record = run.record
    place = waiting_place(clients, record.run_id, now) if record.state is RunState.WAITING else None
    failure, problems = _failure(clients, record)
    shown = replace(record, failure=failure, problems=(*record.problems, *problems))
    return Explanation(run=explained_run(shown, place=place), record=shown)


def explained_run(record: RunRecord, *, place: Waits | None = None) -> RunExplanation:
    """The explanation that a record gives, with its place in the queue."""
    completion, error = record.completion, record.failure
    best = record.tuning or record.progress
    return RunExplanation(
        run_id=record.run_id,
        state=record.state,
        history=record.history,
        source=record.source,
        program=_program(record),
        tries=record.submission.tries,
        abandoned_jobs=record.submission.abandoned_jobs,
        job=record.job,
        console_uri=console_uri(record.job.name) if record.job else None,
        replicas=_replicas(record),
        waiting=record.admission.waiting,
        place=place,
        failure=error,
        repair=repair_of(error, record.run_id) if error else None,
        model=record.model,
        best_trial=best.best_trial if best else None,
        champion=completion.champion if completion else None,
        estimate=record.request.estimate if record.request else None,
        cost=completion.cost if completion else None,
        problems=record.problems,
    )


def _program(record: RunRecord) -> ExplainedProgram | None:
    candidate = candidate_of(record)
    if record.request is None or candidate is None:
        return None
    image = candidate.spec.cluster.chief.program.image
    _, has_digest, digest = image.partition(_DIGEST)
    return ExplainedProgram(
        model_name=record.request.model_name,
        dialect=record.request.original.dialect,
        original_uri=record.request.original.uri,
        image=image,
        image_digest=f"sha256:{digest}" if has_digest else None,
        machines=candidate.text,
    )


def _replicas(record: RunRecord) -> tuple[Replicas, ...]:
    candidate = candidate_of(record)
    if candidate is None:
        return ()
    return tuple(
        Replicas(role=role, count=pool.replicas, machine=pool.machine)
        for role, pool in pools_of(candidate.spec.cluster)
    )


def _failure(clients: "Clients", record: RunRecord) -> tuple[Failure | None, tuple[str, ...]]:
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
