"""Lines about a run that several screens and pages have."""

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from trainmaster.client.runs.facts import (
    candidate_of,
    cost_so_far,
    has_timed_out,
    installed_uri,
    trials_text,
)
from trainmaster.client.runs.repairs import repair_of
from trainmaster.client.terminal import Fact, one_line, plural
from trainmaster.client.times import minute, span, utc_text
from trainmaster.orchestrator.core.admission.retries import followed_texts
from trainmaster.orchestrator.core.admission.start_deadline import queued_job
from trainmaster.orchestrator.core.completion.error_repair import as_sentence
from trainmaster.orchestrator.core.completion.steps import EXPERIMENT, REGISTRY
from trainmaster.orchestrator.core.documents.codec import decoded
from trainmaster.orchestrator.core.documents.faults import Fault
from trainmaster.orchestrator.core.documents.places import TextPlace
from trainmaster.orchestrator.core.documents.values import mapping_at
from trainmaster.orchestrator.core.job_names import console_uri, job_id, job_region
from trainmaster.orchestrator.core.names import has_form_of_run_id, in_team
from trainmaster.orchestrator.core.policy.currency import shown_money
from trainmaster.orchestrator.core.requests.spec import Script, spec_of
from trainmaster.orchestrator.core.runs.end import (
    Completion,
    FailedStep,
    FollowUp,
    Model,
    Registration,
    RegistrationState,
)
from trainmaster.orchestrator.core.runs.job import (
    BestTrial,
    JobState,
    Queued,
    RecordedTrial,
    TrialState,
    trials_by_state,
)
from trainmaster.orchestrator.core.runs.record import RunRecord, Source, metrics_of
from trainmaster.orchestrator.core.runs.sender import Sender, Surety
from trainmaster.orchestrator.core.runs.states import RunState

FAILED_SHOWN = 3
EARLIER_SHOWN = 5
CENT = Decimal("0.01")
REASON_MAX_CHARS = 300
QUEUED_LONG = timedelta(minutes=10)
"""From then on lists of runs say that a job is queued."""
_TEXTS = ("path", "problem", "found", "allowed", "repair")
COMMIT_SHOWN = 12
"""Characters of a commit's id; the record has all."""


def source_text(source: Source) -> str:
    """What started the run: the file with its generation, the message, or the rule."""
    uri = f"{source.uri}#{source.generation}" if source.uri else ""
    if source.rule_id is not None:
        return f"firing {source.firing} of the rule {source.rule_id} (condition {source.condition})"
    if source.message_id is not None:
        key = f", key {source.idempotency_key}" if source.idempotency_key else ""
        return f"message {source.message_id}{key}"
    return f"upload {uri}"


def sender_text(sender: Sender) -> str:
    """Who it was, and how sure that is."""
    how = {Surety.EVENT: "as the service saw", Surety.CREDENTIALS: "by its credentials, as the sender says"}
    return f"{sender.name} ({how.get(sender.by, 'as the sender says')})"


def sender_facts(record: RunRecord) -> Iterator[Fact]:
    """Who sent the request, from which commit, with which arguments for the chief, which image and which packed script."""
    source, candidate = record.source, candidate_of(record)
    if source.sent_by is not None:
        yield "sent by", [sender_text(source.sent_by)]
    if (group := source.group) is not None:
        lines = [f"run {group.number} of {group.runs} of a matrix", f"trainmaster ls --group {group.id}"]
        yield "group", lines
    if (commit := source.commit) is not None:
        on = f" on {commit.branch}" if commit.branch else ""
        changes = ", with uncommitted changes" if commit.dirty else ""
        yield "commit", [f"{commit.id[:COMMIT_SHOWN]}{on}{changes}"]
    if source.forced is not None:
        yield "forced", [f"sent although the check said: {source.forced}"]
    program = candidate.spec.cluster.chief.program if candidate is not None else None
    if program is not None and program.args:
        yield "arguments", [shlex.join(program.args)]
    if program is not None:
        yield "image", [program.image]
    if isinstance(program, Script):
        yield "packed", [program.archive]
    if (installed := installed_uri(record)) is not None:
        yield "packages", [installed]
    if record.request is not None and (uri := record.request.document.get("continue_from")):
        yield "continues", [next(filter(has_form_of_run_id, str(uri).split("/")), str(uri))]


def earlier_job_facts(record: RunRecord, *, is_local: bool) -> Iterator[Fact]:
    """The last jobs of the run that another one follows: where each was, how it ended, its cost and its page in the console."""
    places = {(one.candidate, one.at): one.text for one in record.submission.tries}
    currency = record.request.estimate.currency if record.request and record.request.estimate else ""
    lines: list[str] = []
    for job, text in [*zip(record.submission.abandoned_jobs, followed_texts(record), strict=True)][
        -EARLIER_SHOWN:
    ]:
        where = places.get((job.candidate, job.at), job_region(job.job))
        cost = f" It cost {shown_money(job.cost, currency)}." if job.cost is not None and currency else ""
        lines.append(f"{job_id(job.job)}, {where}, {utc_text(job.at)}: {as_sentence(text)}{cost}")
        lines += [] if is_local else [console_uri(job.job)]
    if lines:
        yield "jobs before", lines


def job_facts(
    record: RunRecord, now: datetime, *, is_local: bool, held_by: str | None = None
) -> Iterator[Fact]:
    """Where the job runs, on which machines, and its page in the console.

    `held_by` is what holds a queued job on the local stack, empty if nothing does; None: that was not read.
    """
    candidate = candidate_of(record)
    if candidate is not None:
        yield "machines", [candidate.text]
    if record.job is not None:
        state = f"{record.job.name}, {record.job.state.removeprefix('JOB_STATE_').lower()}"
        yield "job", [state, *_why_queued(record, now, held_by, is_local=is_local)]
        if not is_local:
            yield "console", [console_uri(record.job.name)]


def _why_queued(record: RunRecord, now: datetime, held_by: str | None, *, is_local: bool) -> Iterator[str]:
    if text := queued_text(queued_job(record), now):
        yield text
    if text and held_by:
        yield f"held by {held_by}"
    elif text and is_local and record.job is not None and record.job.state == JobState.QUEUED:
        after = "It starts once other jobs have ended: `trainmaster up --capacity` says how many replicas run at once."
        unknown = f"What keeps it from its start, other jobs or an injection: trainmaster why {record.run_id}"
        yield unknown if held_by is None else after


def queued_text(queued: Queued | None, now: datetime, at_least: timedelta = timedelta(0)) -> str:
    """`queued 2h 10m in europe-west4; next candidate us-central1 at 14:30 UTC`; empty if it is not queued for so long."""
    if queued is None or now - queued.since < at_least:
        return ""
    minutes = (now - queued.since) // timedelta(minutes=1)
    text = f"queued {span(timedelta(minutes=minutes)) if minutes else 'just now'} in {queued.region}"
    if queued.start_by is None:
        return text
    at, day = minute(queued.start_by), f"{now.astimezone(UTC):%Y-%m-%d} "
    when = f"at {at.removeprefix(day)} UTC" if queued.start_by > now else "once this job is cancelled"
    return f"{text}; next candidate {queued.next_candidate} {when}"


def waiting_facts(record: RunRecord, now: datetime) -> Iterator[Fact]:
    """Why the run waits, and when it is tried again."""
    waiting = record.admission.waiting
    if waiting is None:
        return
    yield "waits for", [waiting.reason]
    due = waiting.not_before
    when = f"at {utc_text(due)}, in {span(due - now)}" if due > now else "now, with the next tick"
    rounds = f", after {plural(waiting.attempts, 'attempt')}" if waiting.attempts else ""
    yield "next try", [f"{when}{rounds}"]


def metric_facts(metrics: Mapping[str, float] | None) -> Iterator[Fact]:
    """Every metric with its value; nothing without any."""
    if metrics:
        yield "metrics", [", ".join(f"{name} {value:g}" for name, value in metrics.items())]


def progress_facts(record: RunRecord, now: datetime) -> Iterator[Fact]:
    """How much of a running training is done, how long it may still take, and what that means for timeout and cost."""
    reached = None if record.ended else record.progress
    if reached is None or reached.progress_percentage is None:
        return
    lines = [f"{reached.progress_percentage} %"]
    if reached.estimated_remaining_seconds is not None and reached.last_updated_time is not None:
        end = reached.last_updated_time + timedelta(seconds=reached.estimated_remaining_seconds)
        lines = [f"{lines[0]}, about {span(end - now)} left", *_at_this_pace(record, end, now)]
    yield "progress", lines


def _at_this_pace(record: RunRecord, end: datetime, now: datetime) -> Iterator[str]:
    """Warnings about a job that will end then."""
    started = record.job.start_time if record.job else None
    if record.request is None or started is None:
        return
    estimate = record.request.estimate
    timeout_s = mapping_at(record.request.document, "scheduling").get("timeout_s")
    if isinstance(timeout_s, int) and end > (stop := started + timedelta(seconds=timeout_s)):
        yield f"will exceed timeout_s ({timeout_s}) at this pace: it is cancelled in {span(stop - now)}"
    cost = cost_so_far(record, end) or Decimal(0)
    if estimate is not None and cost >= CENT:
        yield f"will cost about {shown_money(cost, estimate.currency)} at this pace"


def result_facts(record: RunRecord, now: datetime) -> Iterator[Fact]:
    """Progress, trials, metrics and the model, as far as there are any, and what was removed."""
    if record.cleaned:
        parts = (f"{part} at {utc_text(at)}" for part, at in record.cleaned.items())
        yield "removed", [f"by the policy's retention: {', '.join(parts)}"]
    yield from progress_facts(record, now)
    reached, tuning = record.progress, record.tuning
    trials = trials_by_state(tuning.trials) if tuning else reached.trials if reached else None
    best = tuning.best_trial if tuning else reached.best_trial if reached else None
    if trials:
        counts = ", ".join(f"{count} {state.lower()}" for state, count in trials.items())
        ended = trials_text(record)
        yield "trials", [f"{ended}: {counts}" if ended else counts]
    if best is not None:
        yield "best trial", [best_text(best)]
    yield from failed_trial_facts(record)
    yield from metric_facts(metrics_of(record))
    if record.model is not None:
        yield "model", model_lines(record.model)
    yield from verdict_facts(record)


def failed_trial_facts(record: RunRecord) -> Iterator[Fact]:
    """Why the first trials of an ended tuning are infeasible, how many more are, and the command for the first one's log."""
    trials = record.tuning.trials if record.tuning else ()
    failed = [trial for trial in trials if trial.state is TrialState.INFEASIBLE]
    if failed:
        more = len(failed) - FAILED_SHOWN
        reasons = [f"trial {trial.id}: {trial_reason(trial)}" for trial in failed[:FAILED_SHOWN]]
        rest = [f"and {plural(more, 'more trial')}"] if more > 0 else []
        yield "no result", [*reasons, *rest, f"trainmaster logs {record.run_id} --trial {failed[0].id}"]


def trial_reason(trial: RecordedTrial) -> str:
    """Why the trial has no result: its program's error if the record has that, else what the service says."""
    words = trial.failure.message if trial.failure else ""
    return one_line(words or trial.infeasible_reason or "no reason given", REASON_MAX_CHARS)


def verdict_facts(record: RunRecord) -> Iterator[Fact]:
    """What the evaluation measured, whether the model became champion and why, its version in the Model Registry, and its experiment."""
    completion = record.completion
    if completion is None:
        return
    if completion.evaluation is not None:
        yield "evaluation", list(_evaluation_lines(completion.evaluation, record.run_id))
    verdict = completion.champion
    if verdict is not None:
        decision = "promoted" if verdict.promoted else "not promoted" + " yet" * bool(verdict.approve_by)
        against = [f"compared with {verdict.compared_with}"] if verdict.compared_with else []
        name = in_team(record.source.team, record.model_name or "")
        order = [approve_command(name, record.run_id)] if verdict.approve_by else []
        yield "champion", [f"{decision}: {verdict.reason}", *against, *order]
    if completion.registration is not None:
        yield "registry", list(_registration_lines(completion.registration, completion.steps_failed or {}))
    spec = spec_of(record)
    if spec is not None and spec.experiment is not None:
        yield "experiment", list(_experiment_lines(spec.experiment, completion))


def approve_command(model_name: str, run_id: str) -> str:
    """The command that promotes a challenger that waits for it."""
    return shlex.join(["trainmaster", "champions", "approve", model_name, run_id])


def _evaluation_lines(evaluation: FollowUp, run_id: str) -> Iterator[str]:
    for model, metrics in (evaluation.scores or {}).items():
        yield f"{model}: {', '.join(f'{name} {value:g}' for name, value in metrics.items())}"
    if evaluation.failure is not None:
        yield f"failed: {evaluation.failure}"
    if evaluation.job is not None:
        yield f"{evaluation.job.name}, {evaluation.job.state.removeprefix('JOB_STATE_').lower()}"
        if evaluation.failure is not None:
            yield f"its log: trainmaster logs {run_id} --evaluation"


def _experiment_lines(name: str, completion: Completion) -> Iterator[str]:
    failed = (completion.steps_failed or {}).get(EXPERIMENT)
    if failed is None:
        yield f"{name}, logged" if EXPERIMENT in completion.steps_done else f"{name}, not logged yet"
    else:
        yield f"{name}, failed: {failed.error}"
        yield f"tried again at {utc_text(failed.next_at)}" if failed.next_at else "given up"


def _registration_lines(found: Registration, failed: Mapping[str, FailedStep]) -> Iterator[str]:
    tried = f"; smoke test {found.smoke}" if found.smoke is not None else ""
    match found.state:
        case RegistrationState.UPLOADING:
            yield f"being uploaded{f' since {minute(found.since)} UTC' if found.since else ''}{tried}"
        case RegistrationState.REGISTERED:
            alias = f", alias {found.alias}" if found.alias else ""
            yield f"version {found.version} of {str(found.model).rpartition('/')[2]}{alias}{tried}"
        case RegistrationState.FAILED:
            yield f"failed: {found.error}{tried}"
            next_at = failed[REGISTRY].next_at if REGISTRY in failed else None
            yield f"tried again at {utc_text(next_at)}" if next_at else "given up"


def best_text(best: BestTrial) -> str:
    """The trial with its value and its parameters."""
    texts = {
        name: f"{value:g}" if isinstance(value, float) else value for name, value in best.parameters.items()
    }
    parameters = ", ".join(f"{name}={text}" for name, text in texts.items())
    return f"{best.id}: {best.metric} {best.value:g} ({best.goal}) with {parameters}"


def model_lines(model: Model) -> list[str]:
    """The model's place, format and size."""
    what = [model.format or "unknown format"]
    if files := model.files:
        what += [plural(files.count, "file"), plural(files.size_bytes, "byte")]
    gone = (
        [f"removed by the policy's retention since {utc_text(model.deleted_at)}"] if model.deleted_at else []
    )
    return [model.uri, ", ".join(what), *gone]


def failure_facts(record: RunRecord) -> Iterator[Fact]:
    """Why the run failed or was cancelled, the last lines of the replica that failed first, and the likely repair."""
    failure = record.failure
    if failure is None:
        if record.state is RunState.CANCELLED and record.cancel_requested_at is not None:
            yield "cancelled", [f"as requested at {utc_text(record.cancel_requested_at)}{by_text(record)}"]
        return
    label = "cancelled" if record.state is RunState.CANCELLED else "failed"
    yield "timed out" if has_timed_out(record) else label, failure.message.split("\n")
    if failure.last_lines:
        yield "last lines", [f"of {failure.replica or 'the job'}:", *failure.last_lines]
    if (repair := repair_of(failure, record.run_id, record)) is not None:
        yield "repair", [repair]


def by_text(record: RunRecord) -> str:
    """Who cancelled the run, to follow a time; empty if that is not known."""
    return f" by {sender_text(record.cancel_requested_by)}" if record.cancel_requested_by else ""


def fault_facts(record: RunRecord, known: Collection[str] = ()) -> Iterator[Fact]:
    """The faults of a rejected request, each with its line; of any other run its problems, without those `known`."""
    rejection = record.rejection
    faults = rejection.faults if rejection and rejection.faults else ()
    file = (record.source.object_name or "request").rpartition("/")[2]
    for lines in rendered_faults(faults, file):
        yield "fault", lines
    for problem in record.problems[len(faults) :]:
        if problem not in known:
            yield "problem", [problem]
    if rejection is not None and rejection.report_uri:
        yield "report", [rejection.report_uri]


def rendered_faults(faults: Sequence[object], file: str) -> Iterator[Sequence[str]]:
    """The lines of each fault of a report, with its place in the file of that name."""
    if not faults:
        return
    from trainmaster.orchestrator.core.documents.placing import lines_of_fault

    for fault in reported_faults(faults):
        yield lines_of_fault(fault, file)


def reported_faults(documents: Iterable[object]) -> list[Fault]:
    """The faults in entries of schemas/rejection_report.v1.schema.json, in the order of the file that they are in.

    What an entry lacks is empty; of one that cannot be read the problem is left.
    """
    # It imports the parser of YAML, which takes longer than the rest of a run's screen.
    from trainmaster.orchestrator.core.documents.placing import position

    return sorted(map(_reported_fault, documents), key=position)


def _reported_fault(document: object) -> Fault:
    if not isinstance(document, Mapping):
        return Fault(path="$", problem=str(document))
    path, problem, found, allowed, repair = (str(document.get(name, "")) for name in _TEXTS)
    try:
        place = decoded(TextPlace, document) if "line" in document else None
    except (TypeError, ValueError):
        place = None
    return Fault(path=path or "$", problem=problem, found=found, allowed=allowed, repair=repair, place=place)
